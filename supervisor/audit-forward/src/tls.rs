//! The TLS settings of connections to destinations: which certificates are accepted.

use std::path::Path;
use std::sync::Arc;

use lockhouse_base::files;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::delivery_error::TlsError;

/// Maximum size of the file with the certificates of `forward_ca`, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Creates the TLS settings. With `ca`, only certificates that were issued by those in this file are accepted; else those
/// that the system trusts. The file is read each time, so that a renewed one is used without a restart.
pub(crate) fn client_config(ca: Option<&Path>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match ca {
        Some(path) => builder.with_root_certificates(read_roots(path)?),
        None => builder.with_platform_verifier()?,
    };
    Ok(builder.with_no_client_auth())
}

/// Creates the settings of a client that makes no TLS connection: it accepts no certificate, and needs none of the system.
pub(crate) fn no_tls() -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn read_roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let text = files::read_following_links(path, FILE_BYTES_MAX).map_err(unreadable)?;
    let text = text.ok_or_else(|| unreadable(std::io::ErrorKind::NotFound.into()))?;
    let no_certificate = || TlsError::NoCertificate { path: path.to_owned() };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        roots.add(certificate.map_err(|_| no_certificate())?).map_err(|_| no_certificate())?;
    }
    if roots.is_empty() { Err(no_certificate()) } else { Ok(roots) }
}
