//! The certificate of a client that a trusted proxy passes on in the header `Client-Cert` (RFC 9440). It restricts the use of a
//! token that is bound to it; it authenticates nobody on its own, because it comes without the client's signature.

use std::sync::Arc;

use axum::http::HeaderMap;
use data_encoding::BASE64;
use percent_encoding::percent_decode_str;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::access::ShownBy;

const CLIENT_CERT: &str = "client-cert";
const UNREADABLE: &str =
    "Client-Cert has no certificate in base64 between colons, and no percent-encoded PEM";

/// Whether trusted proxies pass on the certificates of their clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct CertificateHeader {
    is_read: bool,
}

impl CertificateHeader {
    pub(super) fn new(is_read: bool) -> Self {
        Self { is_read }
    }

    /// Returns the certificate in the headers of a request of a trusted proxy. `None` if the client has shown the proxy none.
    ///
    /// # Errors
    /// Why the header cannot be read.
    pub(super) fn read(self, headers: &HeaderMap) -> Result<Option<ShownBy>, &'static str> {
        let mut sent = headers.get_all(CLIENT_CERT).iter();
        let Some(value) = sent.next().filter(|_| self.is_read) else { return Ok(None) };
        if sent.next().is_some() {
            return Err("there is more than one header Client-Cert");
        }
        let value = value.to_str().map_err(|_| UNREADABLE)?;
        if value.is_empty() || value == "::" {
            return Ok(None);
        }
        let certificate = match value.strip_prefix(':').and_then(|rest| rest.strip_suffix(':')) {
            Some(text) => BASE64.decode(text.as_bytes()).map_err(|_| UNREADABLE)?,
            // As nginx writes it.
            None => {
                let pem: Vec<u8> = percent_decode_str(value).collect();
                CertificateDer::from_pem_slice(&pem).map_err(|_| UNREADABLE)?.to_vec()
            }
        };
        Ok(Some(ShownBy::Proxy(Arc::new(certificate))))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn read(is_read: bool, values: &[&'static str]) -> Result<Option<Vec<u8>>, &'static str> {
        let name = HeaderName::from_static(CLIENT_CERT);
        let headers = values.iter().map(|value| (name.clone(), HeaderValue::from_static(value)));
        let shown = CertificateHeader::new(is_read).read(&headers.collect())?;
        Ok(shown.map(|shown| match shown {
            ShownBy::Proxy(certificate) => certificate.to_vec(),
            ShownBy::Client(_) => Vec::new(),
        }))
    }

    #[test]
    fn the_certificate_is_read_in_both_forms_if_the_configuration_says_so() {
        let der = || Ok(Some(b"der".to_vec()));
        assert_eq!(read(true, &[":ZGVy:"]), der());
        let pem = "-----BEGIN%20CERTIFICATE-----%0AZGVy%0A-----END%20CERTIFICATE-----%0A";
        assert_eq!(read(true, &[pem]), der());
        for none in [&[][..], &[""], &["::"]] {
            assert_eq!(read(true, none), Ok(None), "{none:?}");
        }
        assert_eq!(read(false, &[":ZGVy:"]), Ok(None));
        for wrong in ["ZGVy", ":ZGV:", ":Z G V y:", ":ZGVy:, :ZGVy:", "-----BEGIN%20CERTIFICATE-----"] {
            assert_eq!(read(true, &[wrong]), Err(UNREADABLE), "{wrong}");
        }
        assert!(read(true, &[":ZGVy:", ":ZGVy:"]).is_err());
    }
}
