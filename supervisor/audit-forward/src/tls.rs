//! The TLS settings of connections to destinations: which certificates are accepted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockhouse_base::files;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::delivery_error::TlsError;
use crate::destination_entry::ClientIdentity;

/// Maximum size of a file with certificates or a key, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The files of a connection with TLS.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    /// The certificates that must have issued that of the destination. `None` for those that the system trusts.
    pub(crate) ca: Option<PathBuf>,
    /// The certificate of this machine, if the destination requires one.
    pub(crate) identity: Option<ClientIdentity>,
}

/// Creates the TLS settings. The files are read each time, so that renewed ones are used without a restart.
pub(crate) fn client_config(tls: &TlsFiles) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match &tls.ca {
        Some(path) => builder.with_root_certificates(read_roots(path)?),
        None => builder.with_platform_verifier()?,
    };
    let Some(ClientIdentity { certificate, key }) = &tls.identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain = read_certificates(certificate, "certificate")?;
    let invalid = |_| TlsError::NoKey { path: key.clone() };
    let key = PrivateKeyDer::from_pem_slice(read(key, "key")?.as_bytes()).map_err(invalid)?;
    Ok(builder.with_client_auth_cert(chain, key)?)
}

/// Creates the settings of a client that makes no TLS connection: it accepts no certificate, and needs none of the system.
pub(crate) fn no_tls() -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn read_roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path, "forward_ca")? {
        let no_certificate = |_| TlsError::NoCertificate { path: path.to_owned(), key: "forward_ca" };
        roots.add(certificate).map_err(no_certificate)?;
    }
    Ok(roots)
}

/// Reads the certificates of the file that a key of the configuration names: at least one.
fn read_certificates(path: &Path, key: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let no_certificate = || TlsError::NoCertificate { path: path.to_owned(), key };
    let text = read(path, key)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    certificates.ok().filter(|certificates| !certificates.is_empty()).ok_or_else(no_certificate)
}

fn read(path: &Path, key: &'static str) -> Result<String, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), key, source };
    let text = files::read_following_links(path, FILE_BYTES_MAX).map_err(unreadable)?;
    text.ok_or_else(|| unreadable(std::io::ErrorKind::NotFound.into()))
}
