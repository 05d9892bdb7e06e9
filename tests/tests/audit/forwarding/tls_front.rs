//! A TLS server that passes what it receives to another server, or to a function of the test.

use std::path::Path;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::http::tls::certificate_file;

/// A server that accepts TLS and passes the connections to an HTTP server.
pub(super) struct TlsFront {
    port: u16,
}

impl TlsFront {
    /// Starts a server with the test certificate `name` in front of the server at `url`, until the test ends.
    pub(super) async fn start(name: &str, url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let behind = url.strip_prefix("http://").expect("a URL").to_owned();
        let acceptor = acceptor(name);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, behind) = (acceptor.clone(), behind.clone());
                tokio::spawn(async move {
                    let mut client = acceptor.accept(stream).await?;
                    let mut server = TcpStream::connect(behind).await?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        Self { port }
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Returns the TLS settings of a server with the test certificate `name`.
pub(super) fn acceptor(name: &str) -> TlsAcceptor {
    let path = |ending: &str| certificate_file(&format!("{name}.{ending}"));
    let chain = CertificateDer::pem_file_iter(path("pem")).expect("a certificate");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(Path::new(&path("key"))).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).expect("a pair")))
}
