//! Reads the certificate and the key of the HTTP server from the files that `[http.tls]` names, and checks them.

use std::fs::Metadata;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, RootCertStore};

use super::TlsFiles;

/// Maximum size of a certificate or key file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// A warning is logged whenever a certificate is read that is valid for less than this time.
const EXPIRY_WARNING: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Why the TLS files cannot be used, and what to change.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}, which [http.tls] names: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}, which [http.tls] names, is not a file of at most 1 MiB")]
    NoFile { path: PathBuf },
    #[error("{path} is not a valid PEM file: it was truncated or changed, so write it again")]
    NotPem { path: PathBuf },
    #[error(
        "{path} contains no certificate: certificate in [http.tls] names a PEM file that has -----BEGIN CERTIFICATE-----"
    )]
    NoCertificate { path: PathBuf },
    #[error("every user of this host can use the key in {path}: chmod o= {path}")]
    ExposedKey { path: PathBuf },
    #[error(
        "{path} contains no usable private key: key in [http.tls] names a PEM file that has -----BEGIN PRIVATE KEY-----, without a password"
    )]
    NoKey { path: PathBuf },
    #[error("{certificate}: {source}")]
    Certificate { certificate: PathBuf, source: CertificateFault },
    #[error("the key in {key} does not belong to the certificate in {certificate}: name a matching pair")]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("{certificate} and {key}: {source}")]
    Unusable { certificate: PathBuf, key: PathBuf, source: Error },
}

/// Why clients would reject the server's certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFault {
    #[error("the certificate has expired: renew it")]
    Expired,
    #[error("the certificate is not valid yet: check the clock of this host")]
    NotValidYet,
    #[error("the certificate cannot be parsed")]
    Unknown,
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
}

/// Reads the certificate and key files, and checks that they can be used and belong to each other.
pub(super) fn load(files: &TlsFiles) -> Result<CertifiedKey, TlsError> {
    let TlsFiles { certificate, key } = files;
    let chain = read_chain(certificate)?;
    let private = read_private_key(key)?;
    check_validity(&chain)
        .map_err(|source| TlsError::Certificate { certificate: certificate.clone(), source })?;
    let (certificate, key) = (certificate.clone(), key.clone());
    CertifiedKey::from_der(chain, private, &aws_lc_rs::default_provider()).map_err(|error| match error {
        Error::InconsistentKeys(_) => TlsError::Mismatch { certificate, key },
        source => TlsError::Unusable { certificate, key, source },
    })
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (text, _) = read_file(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|_| TlsError::NotPem { path: path.to_owned() })?;
    match chain.is_empty() {
        true => Err(TlsError::NoCertificate { path: path.to_owned() }),
        false => Ok(chain),
    }
}

fn read_private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let (text, found) = read_file(path)?;
    if found.mode() & 0o007 != 0 {
        return Err(TlsError::ExposedKey { path: path.to_owned() });
    }
    // The parser's message could quote the key, so it is dropped.
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| TlsError::NoKey { path: path.to_owned() })
}

fn read_file(path: &Path) -> Result<(Vec<u8>, Metadata), TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(TlsError::NoFile { path: path.to_owned() });
    }
    Ok((std::fs::read(path).map_err(unreadable)?, found))
}

/// Rejects a certificate that is expired or not yet valid, and logs a warning if it expires soon. Its issuer is not
/// checked, because each client decides which issuers it trusts.
fn check_validity(chain: &[CertificateDer<'static>]) -> Result<(), CertificateFault> {
    let now = UnixTime::now();
    let soon = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + EXPIRY_WARNING);
    check_validity_at(chain, now)?;
    if check_validity_at(chain, soon).is_err() {
        tracing::warn!("the certificate of [http.tls] expires within 14 days");
    }
    Ok(())
}

fn check_validity_at(chain: &[CertificateDer<'static>], at: UnixTime) -> Result<(), CertificateFault> {
    use tokio_rustls::rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let Some((own, between)) = chain.split_first() else { return Ok(()) };
    let mut roots = RootCertStore::empty();
    roots.add(chain.last().unwrap_or(own).clone()).map_err(|_| CertificateFault::Unknown)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    // rustls checks the validity period before the name, so any name works.
    let name = ServerName::from(Ipv4Addr::LOCALHOST);
    match verifier.verify_server_cert(own, between, &name, &[], at) {
        Err(Error::InvalidCertificate(Expired | ExpiredContext { .. })) => Err(CertificateFault::Expired),
        Err(Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. })) => {
            Err(CertificateFault::NotValidYet)
        }
        _ => Ok(()),
    }
}
