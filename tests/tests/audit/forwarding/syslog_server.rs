//! A syslog server over TLS, which the test can stop and start, and which may misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::received::Received;
use super::tls_front::acceptor;

/// A syslog server on a port of its own.
pub(super) struct SyslogServer {
    port: u16,
    acceptor: TlsAcceptor,
    received: Received,
    /// The number of messages after which a connection is closed in the middle of the next one; 0 for never.
    close_after: Arc<AtomicUsize>,
    accepting: Option<JoinHandle<()>>,
}

impl SyslogServer {
    /// Starts a server with the test certificate `name`.
    pub(super) async fn start(name: &str) -> Self {
        Self::start_with(acceptor(name)).await
    }

    /// Starts a server with these TLS settings.
    pub(super) async fn start_with(acceptor: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mut server = Self {
            port: listener.local_addr().expect("an address").port(),
            acceptor,
            received: Received::default(),
            close_after: Arc::default(),
            accepting: None,
        };
        server.accept(listener);
        server
    }

    pub(super) fn destination(&self) -> String {
        format!("syslog+tls://127.0.0.1:{}", self.port)
    }

    pub(super) fn received(&self) -> Received {
        self.received.clone()
    }

    /// Makes the server close each connection in the middle of a message, after this number of messages; 0 for never.
    pub(super) fn close_after(&self, messages: usize) {
        self.close_after.store(messages, Ordering::SeqCst);
    }

    /// Closes the port and all connections.
    pub(super) async fn stop(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ = accepting.await;
        }
    }

    /// Listens again, at the same port.
    pub(super) async fn restart(&mut self) {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("an option");
        socket.bind(([127, 0, 0, 1], self.port).into()).expect("the port");
        self.accept(socket.listen(16).expect("a listener"));
    }

    fn accept(&mut self, listener: TcpListener) {
        let (acceptor, received) = (self.acceptor.clone(), self.received.clone());
        let close_after = self.close_after.clone();
        self.accepting = Some(tokio::spawn(async move {
            // The connections end with this task.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, received) = (acceptor.clone(), received.clone());
                let close_after = close_after.clone();
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let _ = receive(BufReader::new(stream), &received, &close_after).await;
                });
            }
        }));
    }
}

/// Receives messages until the client closes the connection.
async fn receive(
    mut connection: impl tokio::io::AsyncBufRead + Unpin,
    received: &Received,
    close_after: &AtomicUsize,
) -> std::io::Result<()> {
    for count in 0.. {
        let mut length = Vec::new();
        if connection.read_until(b' ', &mut length).await? == 0 {
            return Ok(());
        }
        let length: usize = std::str::from_utf8(&length).expect("text").trim().parse().expect("a length");
        let limit = close_after.load(Ordering::SeqCst);
        if limit > 0 && count >= limit {
            return Ok(());
        }
        let mut message = vec![0; length];
        connection.read_exact(&mut message).await?;
        let message = String::from_utf8(message).expect("UTF-8");
        let fields: Vec<&str> = message.splitn(8, ' ').collect();
        let [priority, _time, host, "lockhouse", "-", _event, "-", text] = fields[..] else {
            panic!("not a message of RFC 5424: {message}");
        };
        assert!(["<108>1", "<109>1", "<110>1"].contains(&priority) && !host.is_empty(), "{message}");
        received.add_text(text);
    }
    Ok(())
}
