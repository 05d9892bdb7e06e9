//! Connections that only attackers open.

use std::io::Result;
use std::sync::LazyLock;

use super::stream::{CERTIFICATE, ClientTls, Stream, client_tls, connect_with};

static HTTP2: ClientTls = LazyLock::new(|| client_tls(Some(CERTIFICATE), b"h2"));
/// Of a client that aborts each handshake, because it trusts no certificate.
static NO_TRUST: ClientTls = LazyLock::new(|| client_tls(None, b"http/1.1"));

/// Opens a connection for HTTP/2: over TLS, or with prior knowledge.
pub(crate) async fn connect_http2(host: &str, from: [u8; 4]) -> Result<Box<dyn Stream>> {
    connect_with(host, from, &HTTP2).await
}

/// Begins a TLS handshake, and aborts it when the server has signed it.
pub(crate) async fn abort_handshake(host: &str, from: [u8; 4]) -> Result<()> {
    connect_with(host, from, &NO_TRUST).await.map(drop)
}
