//! Takes connections within the configured limits, and performs TLS handshakes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::http_checks::host_check::ConnectionInfo;
use lockhouse_base::listen::Stream;
use lockhouse_base::log_throttle::LogThrottle;
use lockhouse_link::EngineClient;
use lockhouse_messages::{ClientCertificate, HttpRefusal};
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::connection::{ConnectedClient, ConnectionServer};
use super::connection_limiter::ConnectionLimiter;
use super::connection_source::{AcceptedConnection, AcceptedSocket, ConnectionSource};
use super::connection_timeouts::ConnectionTracker;
use super::counters;
use super::limit_key::LimitKey;
use super::limits::REFUSALS_MAX;
use super::peer_turns::{PeerTurns, Turns};
use super::rate_limiter::RateLimiter;
use super::tls::Tls;
use crate::access::Peer;

/// Pause before connections are accepted again after a temporary error, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(200);
/// Timeout for sending the response on a refused connection and reading what the peer has sent.
/// Bound: AI clients.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes that are read and discarded from a refused connection.
const REFUSAL_DRAIN_BYTES: u64 = 64 * 1024;
/// Time in milliseconds after which a TCP peer that acknowledges no data is disconnected.
/// Bound: AI clients.
const TCP_TIMEOUT_MS: u32 = 60_000;
const TCP_TIMEOUT_S: u32 = TCP_TIMEOUT_MS / 1_000;

const TOO_MANY_CONNECTIONS: &str = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\n\r\ntoo many connections: close some, or retry later";
const TLS_REQUIRED: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 38\r\n\r\nthis port speaks TLS: use an https URL";

/// First byte of a TLS connection: the record type "handshake".
const TLS_HANDSHAKE: u8 = 0x16;

/// Takes the connections of each source, and serves each connection in a task of its own.
#[derive(Clone)]
pub(super) struct Acceptor {
    engine: EngineClient,
    server: ConnectionServer,
    limiter: ConnectionLimiter,
    turns: Arc<PeerTurns>,
    handshakes: RateLimiter,
    tls: Option<Arc<Tls>>,
    refusals: Arc<Semaphore>,
    full_log: Arc<LogThrottle>,
    evicted_log: Arc<LogThrottle>,
    handshake_rate_log: Arc<LogThrottle>,
    accept_error_log: Arc<LogThrottle>,
}

impl Acceptor {
    pub(super) fn new(engine: EngineClient, server: ConnectionServer, tls: Option<Arc<Tls>>) -> Self {
        let limiter = ConnectionLimiter::new(&server.limits);
        let handshakes = RateLimiter::per_second(server.limits.tls_handshakes_per_peer_per_second);
        let refusals = Arc::new(Semaphore::new(REFUSALS_MAX));
        Self {
            engine,
            server,
            limiter,
            turns: Arc::default(),
            handshakes,
            tls,
            refusals,
            full_log: Arc::default(),
            evicted_log: Arc::default(),
            handshake_rate_log: Arc::default(),
            accept_error_log: Arc::default(),
        }
    }

    /// Takes connections from one source until `stopping` is cancelled, and returns when the last of these connections has
    /// ended.
    pub(super) async fn accept(self, source: ConnectionSource, stopping: CancellationToken) {
        let (mut connections, mut is_stopping) = (JoinSet::new(), false);
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.server.closing.cancelled() => break,
                () = stopping.cancelled(), if !is_stopping => {
                    is_stopping = source.stop();
                    if is_stopping { continue } else { break }
                }
                Some(_) = connections.join_next() => continue,
                accepted = source.accept(&self.engine) => accepted,
            };
            match accepted {
                Ok(Some(accepted)) => drop(connections.spawn(self.clone().handle_connection(accepted))),
                Ok(None) => break,
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    self.accept_error_log
                        .write(|times| tracing::warn!("cannot accept connections: {error}{times}"));
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
        drop(source);
        while connections.join_next().await.is_some() {}
    }

    async fn handle_connection(self, accepted: AcceptedConnection) {
        // Until this function returns, the engine knows the connection as open.
        let AcceptedConnection { socket: accepted, peer, open: _known_to_engine } = accepted;
        let (tracker, is_proxy) = (ConnectionTracker::new(), self.server.proxies.is_trusted(&peer));
        if is_proxy {
            tracker.set_authenticated();
        }
        let key = (!is_proxy).then(|| LimitKey::for_peer(&peer));
        let Some(open) = self.limiter.open(key, &tracker) else {
            return self.refuse(accepted).await;
        };
        let _connected = counters::open_connection();
        let turns = self.turns.of(key);
        tokio::select! {
            biased;
            () = open.evicted() => {
                self.evicted_log.write(|times| {
                    tracing::warn!(
                        "an unauthenticated or idle connection was closed to make room for another one: the limit connections, \
                         connections_per_peer or unauthenticated_percent of [http.limits] is reached{times}"
                    );
                });
                counters::count_refusal(HttpRefusal::Evicted);
            }
            () = turns.clone().run(self.serve(accepted, peer, &turns, tracker)) => {}
        }
    }

    async fn refuse(self, accepted: AcceptedSocket) {
        self.full_log.write(|times| {
            tracing::warn!(
                "a connection was refused: the limit connections or connections_per_peer of [http.limits] is reached{times}"
            );
        });
        counters::count_refusal(HttpRefusal::Connections);
        let Ok(_permit) = self.refusals.try_acquire() else { return };
        let until = Instant::now() + REFUSAL_TIMEOUT;
        match accepted {
            // A client that speaks TLS could not read a plain-text response.
            AcceptedSocket::Tcp(_) if self.tls.is_some() => {}
            AcceptedSocket::Tcp(stream) => send_refusal(stream, TOO_MANY_CONNECTIONS).await,
            AcceptedSocket::Unix(stream) => send_refusal(stream, TOO_MANY_CONNECTIONS).await,
        }
        self.pause(until).await;
    }

    async fn serve(&self, accepted: AcceptedSocket, peer: Peer, turns: &Turns, tracker: ConnectionTracker) {
        let is_proxy = self.server.proxies.is_trusted(&peer);
        match accepted {
            AcceptedSocket::Unix(stream) => {
                self.server
                    .serve(
                        Box::new(stream),
                        peer.into(),
                        ConnectionInfo { local: None, is_tls: false },
                        tracker,
                        turns,
                    )
                    .await;
            }
            AcceptedSocket::Tcp(stream) => {
                set_tcp_options(&stream);
                let Ok(local) = stream.local_addr() else { return };
                let connection_info = ConnectionInfo { local: Some(local), is_tls: self.tls.is_some() };
                let Some(tls) = &self.tls else {
                    return self
                        .server
                        .serve(Box::new(stream), peer.into(), connection_info, tracker, turns)
                        .await;
                };
                let handshake = async {
                    let first = first_byte(&stream).await?;
                    if first != TLS_HANDSHAKE {
                        send_refusal(stream, TLS_REQUIRED).await;
                        return None;
                    }
                    // A handshake costs a signature, so its rate is limited.
                    if !is_proxy {
                        self.wait_for_handshake_permit(&peer, &tracker).await?;
                    }
                    tls_handshake(tls, stream).await
                };
                let handshake = tokio::time::timeout(self.server.limits.tls, handshake);
                if let Ok(Some((stream, certificate))) = handshake.await {
                    let client = ConnectedClient { peer, certificate };
                    self.server.serve(stream, client, connection_info, tracker, turns).await;
                }
            }
        }
    }

    /// Waits until the peer's rate limit permits a TLS handshake, and stores the permit in `tracker`, which refunds it
    /// if a request is authenticated. Returns `None` if the peer would have to wait too long.
    async fn wait_for_handshake_permit(&self, peer: &Peer, tracker: &ConnectionTracker) -> Option<()> {
        let permit = self.handshakes.reserve(LimitKey::for_peer(peer));
        if !matches!(permit, Ok((_, wait)) if wait.is_zero()) {
            self.handshake_rate_log.write(|times| {
                tracing::warn!(
                    "a connection is delayed or closed, since its peer exceeds tls_handshakes_per_peer_per_second of [http.limits]{times}"
                );
            });
        }
        match permit {
            Ok((permit, wait)) => {
                tracker.set_handshake_permit(permit);
                self.pause(Instant::now() + wait).await;
                Some(())
            }
            Err(_exceeded) => {
                counters::count_refusal(HttpRefusal::Connections);
                None
            }
        }
    }

    async fn pause(&self, until: Instant) {
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.server.closing.cancelled() => {}
        }
    }
}

/// Returns whether an error of `accept` concerns only one connection, rather than the listening socket or this process.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Disables Nagle's algorithm and enables TCP keep-alive. Errors are ignored: the connection works without these
/// options.
fn set_tcp_options(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    let _ = setsockopt(stream, sockopt::TcpKeepIdle, &TCP_TIMEOUT_S);
    let _ = setsockopt(stream, sockopt::TcpUserTimeout, &TCP_TIMEOUT_MS);
}

/// Waits for the first byte of a connection, and returns it without consuming it. Returns `None` if the peer closes the
/// connection before.
async fn first_byte(stream: &TcpStream) -> Option<u8> {
    let mut first = [0];
    (stream.peek(&mut first).await.ok()? == 1).then_some(first[0])
}

/// Performs the TLS handshake. Returns `None` if it fails.
async fn tls_handshake(
    tls: &Tls,
    stream: TcpStream,
) -> Option<(Box<dyn Stream>, Option<Arc<ClientCertificate>>)> {
    match tls.accept(stream).await {
        Ok((stream, certificate)) => Some((Box::new(stream), certificate)),
        Err(error) => {
            tracing::debug!("a handshake of TLS failed: {error}");
            None
        }
    }
}

/// Sends the HTTP response `answer` on a refused connection, and closes the connection.
async fn send_refusal(mut stream: impl Stream, answer: &str) {
    let telling = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // Unread input would make the kernel send RST, which can discard the response at the peer.
        tokio::io::copy(&mut stream.take(REFUSAL_DRAIN_BYTES), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(REFUSAL_TIMEOUT, telling).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_responses_have_the_right_content_length() {
        for answer in [TOO_MANY_CONNECTIONS, TLS_REQUIRED] {
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{answer}");
        }
    }
}
