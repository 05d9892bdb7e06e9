//! TLS, of files that may be renewed while Lockhouse runs.

use parking_lot::RwLock;
use std::fs::Metadata;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, Error, RootCertStore, ServerConfig};

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

/// Why the files cannot be used, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}, which [http.tls] names: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path}, which [http.tls] names, is no file of at most 1 MiB")]
    NoFile { path: PathBuf },
    #[error("{path} is no valid PEM file: it was cut off or changed, so write it again")]
    NotPem { path: PathBuf },
    #[error(
        "{path} holds no certificate: certificate in [http.tls] names a PEM file that has -----BEGIN CERTIFICATE-----"
    )]
    NoCertificate { path: PathBuf },
    #[error("every user of this host can use the key in {path}: chmod o= {path}")]
    ExposedKey { path: PathBuf },
    #[error(
        "{path} holds no private key that can be used: key in [http.tls] names a PEM file that has -----BEGIN PRIVATE KEY-----, without a password"
    )]
    NoKey { path: PathBuf },
    #[error("{certificate}: {source}")]
    Certificate { certificate: PathBuf, source: CertificateFault },
    #[error(
        "the key in {key} does not belong to the certificate in {certificate}: name the two that were made together"
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("{certificate} and {key}: {source}")]
    Unusable { certificate: PathBuf, key: PathBuf, source: Error },
    #[error("TLS: {0}")]
    Protocol(#[source] Error),
}

/// Why no client would take a certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateFault {
    #[error("the certificate has expired: renew it")]
    Expired,
    #[error("the certificate is not valid yet: look at the clock of this host")]
    NotValidYet,
    #[error("the certificate cannot be understood")]
    Unknown,
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
}

/// What is in force.
#[derive(Debug)]
pub(super) struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    pub(super) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let config = RwLock::new(Arc::new(read(&files)?));
        Ok(Self { files, config })
    }

    /// Reads the files again: connections from now on get what is in them, or what was in force stays.
    pub(super) fn reload(&self) -> Result<(), TlsError> {
        let config = Arc::new(read(&self.files)?);
        *self.config.write() = config;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.read().clone())
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let TlsFiles { certificate, key } = files;
    let chain = chain(certificate)?;
    let private = private_key(key)?;
    check_time(&chain)
        .map_err(|source| TlsError::Certificate { certificate: certificate.clone(), source })?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Protocol)?;
    let config = builder.with_no_client_auth().with_single_cert(chain, private);
    let (certificate, key) = (certificate.clone(), key.clone());
    let mut config = config.map_err(|error| match error {
        Error::InconsistentKeys(_) => TlsError::Mismatch { certificate, key },
        source => TlsError::Unusable { certificate, key, source },
    })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let (text, _) = file(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let chain = chain.map_err(|_| TlsError::NotPem { path: path.to_owned() })?;
    match chain.is_empty() {
        true => Err(TlsError::NoCertificate { path: path.to_owned() }),
        false => Ok(chain),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let (text, found) = file(path)?;
    if found.mode() & 0o007 != 0 {
        return Err(TlsError::ExposedKey { path: path.to_owned() });
    }
    // What is wrong with it may have what is in it.
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| TlsError::NoKey { path: path.to_owned() })
}

fn file(path: &Path) -> Result<(Vec<u8>, Metadata), TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let found = std::fs::metadata(path).map_err(unreadable)?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(TlsError::NoFile { path: path.to_owned() });
    }
    Ok((std::fs::read(path).map_err(unreadable)?, found))
}

/// Refuses a certificate that no client would take because of its time. Who issued it is the clients' business.
fn check_time(chain: &[CertificateDer<'static>]) -> Result<(), CertificateFault> {
    let now = UnixTime::now();
    let soon = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + EXPIRES_SOON);
    check_time_at(chain, now)?;
    if check_time_at(chain, soon).is_err() {
        tracing::warn!("the certificate of [http.tls] expires within 14 days");
    }
    Ok(())
}

fn check_time_at(chain: &[CertificateDer<'static>], at: UnixTime) -> Result<(), CertificateFault> {
    use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    let Some((own, between)) = chain.split_first() else { return Ok(()) };
    let mut roots = RootCertStore::empty();
    roots.add(chain.last().unwrap_or(own).clone()).map_err(|_| CertificateFault::Unknown)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    // Times are checked before names: any name will do.
    let name = ServerName::from(Ipv4Addr::LOCALHOST);
    match verifier.verify_server_cert(own, between, &name, &[], at) {
        Err(Error::InvalidCertificate(Expired | ExpiredContext { .. })) => Err(CertificateFault::Expired),
        Err(Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. })) => {
            Err(CertificateFault::NotValidYet)
        }
        _ => Ok(()),
    }
}
