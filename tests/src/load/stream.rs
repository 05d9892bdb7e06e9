//! Connections over TCP and TLS for load generation.

use std::io::{Error, Result};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The certificate of daemons under test, which their clients trust.
pub(crate) const CERTIFICATE: &str = "tests/http/tls/daemon.pem";
/// What the host of a daemon begins with if it speaks TLS.
pub(crate) const TLS: &str = "tls://";

/// A connection, with TLS or without.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The settings of TLS of a client. `None` if the certificate of the tests cannot be read.
pub(crate) type ClientTls = LazyLock<Option<Arc<ClientConfig>>>;

static HTTP1: ClientTls = LazyLock::new(|| client_tls(Some(CERTIFICATE), b"http/1.1"));

/// Returns the settings of a client that trusts this certificate, or none, and speaks this protocol.
pub(crate) fn client_tls(trusted: Option<&str>, protocol: &[u8]) -> Option<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    if let Some(trusted) = trusted {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(trusted);
        roots.add(CertificateDer::from_pem_file(file).ok()?).ok()?;
    }
    let mut configuration = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    configuration.alpn_protocols = vec![protocol.to_vec()];
    Some(Arc::new(configuration))
}

/// Returns `IP:PORT` of a host.
pub(crate) fn without_scheme(host: &str) -> &str {
    host.strip_prefix(TLS).unwrap_or(host)
}

/// Opens a connection to `host`, `IP:PORT` or `tls://IP:PORT`, from the source address `from`.
pub(crate) async fn connect(host: &str, from: [u8; 4]) -> Result<Box<dyn Stream>> {
    connect_with(host, from, &HTTP1).await
}

/// Opens a connection with these settings of TLS, if the host speaks that.
pub(crate) async fn connect_with(host: &str, from: [u8; 4], tls: &ClientTls) -> Result<Box<dyn Stream>> {
    let stream = connect_tcp(without_scheme(host), from).await?;
    if !host.starts_with(TLS) {
        return Ok(Box::new(stream));
    }
    let tls = (*tls).clone().ok_or_else(|| Error::other("the certificate of the tests cannot be read"))?;
    let name = ServerName::try_from("127.0.0.1").map_err(Error::other)?;
    Ok(Box::new(TlsConnector::from(tls).connect(name, stream).await?))
}

async fn connect_tcp(host: &str, from: [u8; 4]) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    let stream = socket.connect(host.parse().map_err(Error::other)?).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
