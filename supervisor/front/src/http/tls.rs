//! TLS of the HTTP server. The private key is not in the front's process: another process, the signer, reads the certificate
//! and the key, and signs the handshakes. The front gets the certificate, and a socket to the signer, from the engine's
//! process, at its start and whenever the files are read again.

mod files;
mod remote_key;
mod signer;
mod signing;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{Error, ServerConfig, SupportedProtocolVersion};

use remote_key::RemoteKey;

pub use files::TlsError;
pub use signer::Signer;

/// The files that `[http.tls]` names, in PEM format.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TlsFiles {
    /// The file with the server's certificate, followed by intermediate certificates.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The oldest version of TLS that clients may use: `tls_minimum` of `[http]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsVersion {
    /// With it, the signer signs what the front sends, because the signed bytes of a handshake have no form of their own.
    #[serde(rename = "1.2")]
    Tls12,
    #[default]
    #[serde(rename = "1.3")]
    Tls13,
}

impl TlsVersion {
    /// The names in the configuration.
    pub const NAMES: [&'static str; 2] = ["1.2", "1.3"];
}

/// The settings of TLS.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    pub files: TlsFiles,
    pub minimum: TlsVersion,
}

/// The newest first.
static ALL_VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

impl TlsVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => ALL_VERSIONS,
            Self::Tls13 => &ALL_VERSIONS[..1],
        }
    }
}

/// The public part of a certificate and its key, which the signer reports to the engine's process, and that to the front.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServedCertificate {
    /// The certificates, each in DER: the server's first.
    chain: Vec<Vec<u8>>,
    /// The signature schemes of the key, by their numbers in TLS.
    schemes: Vec<u16>,
    minimum: TlsVersion,
}

impl ServedCertificate {
    fn of(key: &CertifiedKey, minimum: TlsVersion) -> Self {
        let chain = key.cert.iter().map(|certificate| certificate.as_ref().to_vec()).collect();
        Self { chain, schemes: signing::schemes(key.key.as_ref()), minimum }
    }
}

/// The current TLS configuration of the front.
#[derive(Debug)]
pub(super) struct Tls(RwLock<Arc<ServerConfig>>);

impl Tls {
    pub(super) fn new(certificate: ServedCertificate, signer: OwnedFd) -> Result<Self, Error> {
        Ok(Self(RwLock::new(Arc::new(configuration(certificate, signer)?))))
    }

    /// Uses another certificate, and another signer, for new connections.
    pub(super) fn replace(&self, certificate: ServedCertificate, signer: OwnedFd) -> Result<(), Error> {
        let replacement = Arc::new(configuration(certificate, signer)?);
        *self.0.write() = replacement;
        Ok(())
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.read().clone())
    }
}

fn configuration(certificate: ServedCertificate, signer: OwnedFd) -> Result<ServerConfig, Error> {
    let ServedCertificate { chain, schemes, minimum } = certificate;
    let chain: Vec<CertificateDer<'static>> = chain.into_iter().map(CertificateDer::from).collect();
    let key = CertifiedKey::new(chain, Arc::new(RemoteKey::new(schemes, signer)));
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_protocol_versions(minimum.versions())?;
    let resolver = Arc::new(SingleCertAndKey::from(key));
    let mut configuration = builder.with_no_client_auth().with_cert_resolver(resolver);
    configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(configuration)
}

/// Makes the crypto library load what it loads at its first use: it asks for a device, which a sealed process cannot.
///
/// # Errors
/// The crypto library fails.
pub fn warm_up() -> Result<(), Error> {
    let provider: CryptoProvider = aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut [0; 32])?;
    for group in &provider.kx_groups {
        group.start()?;
    }
    Ok(())
}
