//! A TLS server that passes what it receives to another server, or to a function of the test.

use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::http::tls::certificate_file;

/// A server that accepts TLS and passes the connections to an HTTP server.
pub(super) struct TlsFront {
    port: u16,
}

impl TlsFront {
    /// Starts a server with the test certificate `name` in front of the server at `url`, until the test ends.
    pub(super) async fn start(name: &str, url: &str) -> Self {
        Self::start_with(acceptor(name), url).await
    }

    /// As [`Self::start`], with the TLS settings of a server.
    pub(super) async fn start_with(acceptor: TlsAcceptor, url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let behind = url.strip_prefix("http://").expect("a URL").to_owned();
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
    acceptor_of(name, WebPkiClientVerifier::no_client_auth())
}

/// Returns the TLS settings of a server with the test certificate `name` that accepts only clients with the test certificate
/// `client`.
pub(super) fn acceptor_for(name: &str, client: &str) -> TlsAcceptor {
    let mut roots = RootCertStore::empty();
    certificates(client).into_iter().for_each(|certificate| roots.add(certificate).expect("a certificate"));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
    acceptor_of(name, verifier.expect("a verifier"))
}

fn acceptor_of(name: &str, clients: Arc<dyn ClientCertVerifier>) -> TlsAcceptor {
    let key = PrivateKeyDer::from_pem_file(certificate_file(&format!("{name}.key"))).expect("a key");
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    let config = builder.with_client_cert_verifier(clients).with_single_cert(certificates(name), key);
    TlsAcceptor::from(Arc::new(config.expect("a pair")))
}

fn certificates(name: &str) -> Vec<CertificateDer<'static>> {
    let chain = CertificateDer::pem_file_iter(certificate_file(&format!("{name}.pem")));
    chain.expect("a certificate").collect::<Result<_, _>>().expect("a certificate")
}
