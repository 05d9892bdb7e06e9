//! Connections between hosts: TLS 1.3 on TCP, with the keys of both hosts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::HostTag;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature_with_raw_key};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig, SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::host_table::{Host, Place};
use crate::membership::Membership;

/// Maximum time until another host has accepted a connection, and for its handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum time for the handshake of a connection that this host accepts.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection between two hosts.
pub type HostConnection = TlsStream<TcpStream>;

/// The purpose of a connection between hosts. It is the protocol of TLS (ALPN), so that no other server of this product takes part in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// Requests of AI clients.
    Requests,
    /// One upstream server.
    Server,
}

impl Use {
    const ALL: [Self; 2] = [Self::Requests, Self::Server];

    fn protocol(self) -> &'static [u8] {
        match self {
            Self::Requests => b"lockhouse-host",
            Self::Server => b"lockhouse-server",
        }
    }
}

/// Why there is no connection to a host, as a clause.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("it did not answer within {} s", CONNECT_TIMEOUT.as_secs())]
    TimedOut,
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// Connects to another host, which must have the key of its lease.
///
/// # Errors
/// [`ConnectError`]
pub async fn connect(
    membership: &Membership,
    host: &Host,
    what_for: Use,
) -> Result<HostConnection, ConnectError> {
    let config = client_config(membership, &host.record.key.0, what_for).map_err(io::Error::other)?;
    let address = host.record.address;
    let connecting = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::from(address.ip());
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    };
    let connected = timeout(CONNECT_TIMEOUT, connecting).await.map_err(|_| ConnectError::TimedOut)?;
    Ok(TlsStream::Client(connected?))
}

/// Accepts connections of other hosts. Clones share the socket.
#[derive(Clone)]
pub struct HostListener {
    listener: Arc<TcpListener>,
    membership: Membership,
    acceptor: TlsAcceptor,
}

impl HostListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// The address cannot be used.
    pub async fn bind(membership: &Membership, address: SocketAddr) -> io::Result<Self> {
        let config = server_config(membership).map_err(io::Error::other)?;
        Ok(Self {
            listener: Arc::new(TcpListener::bind(address).await?),
            membership: membership.clone(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// Waits for the next connection, before its handshake.
    ///
    /// # Errors
    /// None can be accepted now.
    pub async fn accept(&self) -> io::Result<TcpStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    /// Waits until the life of a host with this tag has ended.
    pub async fn ended(&self, tag: HostTag) {
        while !matches!(self.membership.locate(tag), Place::Nowhere) {
            sleep(END_INTERVAL).await;
        }
    }

    /// Shakes hands with the host at the other end of a connection. Returns which one it is, and what it uses the connection for.
    ///
    /// # Errors
    /// It is no host of the cluster, or it took too long.
    pub async fn shake_hands(&self, stream: TcpStream) -> io::Result<(HostConnection, Host, Use)> {
        stream.set_nodelay(true)?;
        let accepting = self.acceptor.accept(stream);
        let accepted = timeout(HANDSHAKE_TIMEOUT, accepting).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let key = accepted.get_ref().1.peer_certificates().and_then(<[_]>::first).map(AsRef::as_ref);
        let host = key.and_then(|key| self.membership.host_with_key(key));
        let host = host.ok_or_else(|| io::Error::other("it is no host of the cluster"))?;
        let protocol = accepted.get_ref().1.alpn_protocol();
        let what_for = Use::ALL.into_iter().find(|known| protocol == Some(known.protocol()));
        let what_for = what_for.ok_or_else(|| io::Error::other("it speaks no known protocol"))?;
        Ok((TlsStream::Server(accepted), host, what_for))
    }
}

/// Interval at which a host looks whether others have ended.
const END_INTERVAL: Duration = Duration::from_secs(1);

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn client_config(membership: &Membership, expected: &[u8], what_for: Use) -> Result<ClientConfig, Error> {
    let expected = CertificateDer::from(expected.to_vec());
    let verifier = ServerKey { expected, provider: provider() };
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
            membership.key().0.clone(),
        )));
    config.alpn_protocols = vec![what_for.protocol().to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn server_config(membership: &Membership) -> Result<ServerConfig, Error> {
    let verifier = HostKeys { membership: membership.clone(), provider: provider() };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(membership.key().0.clone())));
    config.alpn_protocols = Use::ALL.map(|known| known.protocol().to_vec()).to_vec();
    // A connection that is resumed would not show its key again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

fn verify(
    provider: &CryptoProvider,
    message: &[u8],
    key: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let key = SubjectPublicKeyInfoDer::from(key.as_ref());
    verify_tls13_signature_with_raw_key(message, &key, signed, &provider.signature_verification_algorithms)
}

/// Verifies that a host has the key of its lease.
#[derive(Debug)]
struct ServerKey {
    expected: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match *key == self.expected {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::General("it has another key than the lease of the host".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify(&self.provider, message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Verifies that a host has the key of a lease.
#[derive(Debug)]
struct HostKeys {
    membership: Membership,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for HostKeys {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.membership.host_with_key(key.as_ref()) {
            Some(_) => Ok(ClientCertVerified::assertion()),
            None => Err(Error::General("no host of the cluster has this key".to_owned())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify(&self.provider, message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
