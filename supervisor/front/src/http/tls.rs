//! TLS, of files that may be renewed while Lockhouse runs.

use parking_lot::RwLock;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, Error, RootCertStore, ServerConfig};

/// Bytes of a certificate with its chain, or of a key.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How long before a certificate expires the log says so, whenever it is read.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// `[http.tls]`: PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's own first, then those between it and the authority.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What is in force.
#[derive(Debug)]
pub(super) struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// The file, what is wrong with it, and what to do.
    pub(super) fn load(files: TlsFiles) -> Result<Self, String> {
        let config = RwLock::new(Arc::new(read(&files)?));
        Ok(Self { files, config })
    }

    /// Reads the files again: connections from now on get what is in them, or what was in force stays.
    ///
    /// # Errors
    /// As for [`Self::load`].
    pub(super) fn reload(&self) -> Result<(), String> {
        let config = Arc::new(read(&self.files)?);
        *self.config.write() = config;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.read().clone())
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, String> {
    let chain = chain(&files.certificate)?;
    let key = key(&files.key)?;
    check_time(&chain).map_err(|reason| format!("{}: {reason}", files.certificate.display()))?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS: {error}"))?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).map_err(|error| match error {
        Error::InconsistentKeys(_) => format!(
            "the key in {} does not belong to the certificate in {}: name the two that were made together",
            files.key.display(),
            files.certificate.display()
        ),
        error => format!("{} and {}: {error}", files.certificate.display(), files.key.display()),
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let text = text(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain
        .map_err(|_| format!("{shown} is no valid PEM file: it was cut off or changed, so write it again"))?;
    if chain.is_empty() {
        return Err(format!(
            "{shown} holds no certificate: certificate in [http.tls] names a PEM file that has -----BEGIN CERTIFICATE-----"
        ));
    }
    Ok(chain)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let shown = path.display();
    let text = text(path)?;
    let found = std::fs::metadata(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    if found.mode() & 0o007 != 0 {
        return Err(format!("every user of this host can use the key in {shown}: chmod o= {shown}"));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        format!(
            "{shown} holds no private key that can be used: key in [http.tls] names a PEM file that has -----BEGIN PRIVATE KEY-----, without a password"
        )
    })
}

fn text(path: &Path) -> Result<Vec<u8>, String> {
    let shown = path.display();
    let told = |error: io::Error| format!("cannot read {shown}, which [http.tls] names: {error}");
    let found = std::fs::metadata(path).map_err(told)?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(format!("{shown}, which [http.tls] names, is no file of at most 1 MiB"));
    }
    std::fs::read(path).map_err(told)
}

/// Refuses a certificate that no client would take because of its time. Who issued it is the clients' business.
fn check_time(chain: &[CertificateDer<'static>]) -> Result<(), String> {
    let now = UnixTime::now();
    let soon = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + EXPIRES_SOON);
    match fault_of_time(chain, now)? {
        Some(fault) => return Err(fault.to_owned()),
        None if fault_of_time(chain, soon)?.is_some() => {
            tracing::warn!("the certificate of [http.tls] expires within 14 days");
        }
        None => {}
    }
    Ok(())
}

fn fault_of_time(chain: &[CertificateDer<'static>], at: UnixTime) -> Result<Option<&'static str>, String> {
    use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let Some((own, between)) = chain.split_first() else { return Ok(None) };
    let told = |_| "the certificate cannot be understood".to_owned();
    let mut roots = RootCertStore::empty();
    roots.add(chain.last().unwrap_or(own).clone()).map_err(told)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| error.to_string())?;
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    Ok(match verifier.verify_server_cert(own, between, &name, &[], at) {
        Err(Error::InvalidCertificate(Expired | ExpiredContext { .. })) => {
            Some("the certificate has expired: renew it")
        }
        Err(Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. })) => {
            Some("the certificate is not valid yet: look at the clock of this host")
        }
        _ => None,
    })
}
