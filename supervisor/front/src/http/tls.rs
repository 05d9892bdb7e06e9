//! TLS of the HTTP server. The private key is not in the front's process: another process, the signer, reads the certificate
//! and the key, and signs the handshakes. The front gets the certificate, and a socket to the signer, from the engine's
//! process, at its start and whenever the files are read again.

mod files;
mod remote_key;
mod shown_certificate;
mod signer;
mod signing;

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use lockhouse_messages::ClientCertificate;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{Error, ServerConfig, SupportedProtocolVersion};
use tokio_rustls::server::TlsStream;

use remote_key::RemoteKey;
use shown_certificate::ShownCertificate;

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

/// TLS of the front: the current certificate, and whether clients are asked for one.
#[derive(Debug)]
pub(super) struct Tls {
    served: RwLock<Arc<Served>>,
    asks_for_certificates: bool,
}

/// What the handshakes with one certificate need.
#[derive(Debug)]
struct Served {
    provider: Arc<CryptoProvider>,
    resolver: Arc<SingleCertAndKey>,
    minimum: TlsVersion,
    /// For clients that are not asked for a certificate.
    without_certificates: Arc<ServerConfig>,
}

impl Tls {
    pub(super) fn new(
        certificate: ServedCertificate,
        signer: OwnedFd,
        asks_for_certificates: bool,
    ) -> Result<Self, Error> {
        let served = RwLock::new(Arc::new(Served::new(certificate, signer)?));
        Ok(Self { served, asks_for_certificates })
    }

    /// Uses another certificate, and another signer, for new connections.
    pub(super) fn replace(&self, certificate: ServedCertificate, signer: OwnedFd) -> Result<(), Error> {
        let replacement = Arc::new(Served::new(certificate, signer)?);
        *self.served.write() = replacement;
        Ok(())
    }

    /// Performs a handshake. Returns the connection, and the certificate that the client has shown.
    ///
    /// # Errors
    /// The handshake failed.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Arc<ClientCertificate>>)> {
        let served = self.served.read().clone();
        if !self.asks_for_certificates {
            let stream = TlsAcceptor::from(served.without_certificates.clone()).accept(stream).await?;
            return Ok((stream, None));
        }
        let shown = ShownCertificate::new(served.provider.signature_verification_algorithms);
        let configuration = served.with_certificates(&shown).map_err(io::Error::other)?;
        let stream = TlsAcceptor::from(Arc::new(configuration)).accept(stream).await?;
        Ok((stream, shown.take()))
    }
}

impl Served {
    fn new(certificate: ServedCertificate, signer: OwnedFd) -> Result<Self, Error> {
        let ServedCertificate { chain, schemes, minimum } = certificate;
        let chain: Vec<CertificateDer<'static>> = chain.into_iter().map(CertificateDer::from).collect();
        let key = CertifiedKey::new(chain, Arc::new(RemoteKey::new(schemes, signer)));
        let (provider, resolver) =
            (Arc::new(aws_lc_rs::default_provider()), Arc::new(SingleCertAndKey::from(key)));
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(minimum.versions())?.with_no_client_auth();
        let without_certificates = Arc::new(with_protocols(builder.with_cert_resolver(resolver.clone())));
        Ok(Self { provider, resolver, minimum, without_certificates })
    }

    /// Returns the configuration for one connection, whose client is asked for a certificate.
    fn with_certificates(&self, shown: &ShownCertificate) -> Result<ServerConfig, Error> {
        let builder = ServerConfig::builder_with_provider(self.provider.clone());
        let builder = builder.with_protocol_versions(self.minimum.versions())?;
        let builder = builder.with_client_cert_verifier(Arc::new(shown.clone()));
        let mut configuration = with_protocols(builder.with_cert_resolver(self.resolver.clone()));
        // A resumed session has no signature, so the engine could not verify that the client has the key.
        configuration.session_storage = Arc::new(NoServerSessionStorage {});
        configuration.send_tls13_tickets = 0;
        Ok(configuration)
    }
}

fn with_protocols(mut configuration: ServerConfig) -> ServerConfig {
    configuration.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    configuration
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
