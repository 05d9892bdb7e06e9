//! Takes connections in, as many as there may be.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::log_throttle::LogThrottle;
use lockhouse_base::telemetry;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Via;
use super::connection::Serving;
use super::limiter::ConnectionLimiter;
use super::listening::{Listening, Socket};
use super::origin::Origin;
use super::rate::Rate;
use super::tls::Tls;
use super::watched::{Stream, Watch};
use crate::access::Peer;

/// After an error that may pass, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);
/// Strangers that are told in [`TURNED_AWAY_WITHIN`] that there is no place; further ones are just closed, which costs least.
const TURNED_AWAY_MAX: usize = 64;
/// To be told.
const TURNED_AWAY_WITHIN: Duration = Duration::from_secs(1);
/// Of what one that is turned away sends.
const TURNED_AWAY_BYTES: u64 = 64 * 1024;
/// After which a peer that acknowledges nothing is gone.
const SILENT_MS: u32 = 60_000;
const SILENT_SECONDS: u32 = SILENT_MS / 1_000;

const NO_PLACE: &str = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 47\r\n\r\ntoo many connections: close some, or come later";
const NO_TLS: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 38\r\n\r\nthis port speaks TLS: use an https URL";

/// The first byte of a connection that speaks TLS: a record of a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// A connection that was accepted.
enum Accepted {
    Tcp(TcpStream),
    Unix(tokio::net::UnixStream),
}

/// Who is let in from the sockets, and how.
#[derive(Clone)]
pub(super) struct Entrance {
    serving: Serving,
    limiter: ConnectionLimiter,
    handshakes: Rate,
    tls: Option<Arc<Tls>>,
    turned_away: Arc<Semaphore>,
    told_full: Arc<LogThrottle>,
    told_evicted: Arc<LogThrottle>,
    told_fast: Arc<LogThrottle>,
    told_failed: Arc<LogThrottle>,
}

impl Entrance {
    pub(super) fn new(serving: Serving, tls: Option<Arc<Tls>>) -> Self {
        let limiter = ConnectionLimiter::new(&serving.limits);
        let handshakes = Rate::per_second(serving.limits.tls_handshakes_per_peer_per_second);
        let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
        Self {
            serving,
            limiter,
            handshakes,
            tls,
            turned_away,
            told_full: Arc::default(),
            told_evicted: Arc::default(),
            told_fast: Arc::default(),
            told_failed: Arc::default(),
        }
    }

    /// Takes connections in until `closing`, and comes back when the last of them has ended.
    pub(super) async fn accept(self, listening: Listening, closing: CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = closing.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&listening.socket) => accepted,
            };
            match accepted {
                Ok((accepted, peer)) => drop(connections.spawn(self.clone().enter(accepted, peer))),
                Err(error) if is_of_one(&error) => {}
                Err(error) => {
                    self.told_failed
                        .write(|times| tracing::warn!("no connection can be accepted: {error}{times}"));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        drop(listening);
        while connections.join_next().await.is_some() {}
    }

    async fn enter(self, accepted: Accepted, peer: Peer) {
        let (watch, is_proxy) = (Watch::new(), self.serving.proxies.trust(&peer));
        if is_proxy {
            watch.admitted();
        }
        let Some(open) = self.limiter.open((!is_proxy).then(|| Origin::of(&peer)), &watch) else {
            return self.refuse(accepted).await;
        };
        let _connected = telemetry::connection();
        tokio::select! {
            biased;
            () = open.evicted() => {
                self.told_evicted.write(|times| {
                    tracing::warn!(
                        "a connection that had proven nothing, or was idle, was closed for another one: connections, \
                         connections_per_peer or unauthenticated_percent of [http.limits] is reached{times}"
                    );
                });
                telemetry::refused("evicted");
            }
            () = self.serve(accepted, peer, is_proxy, watch) => {}
        }
    }

    async fn refuse(self, accepted: Accepted) {
        self.told_full.write(|times| {
            tracing::warn!(
                "a connection was refused, since all that there may be are in use: connections or connections_per_peer of [http.limits]{times}"
            );
        });
        telemetry::refused("connections");
        let Ok(_place) = self.turned_away.try_acquire() else { return };
        let until = Instant::now() + TURNED_AWAY_WITHIN;
        match accepted {
            // One that speaks TLS could not read it.
            Accepted::Tcp(_) if self.tls.is_some() => {}
            Accepted::Tcp(stream) => turn_away(stream, NO_PLACE).await,
            Accepted::Unix(stream) => turn_away(stream, NO_PLACE).await,
        }
        self.pause(until).await;
    }

    async fn serve(&self, accepted: Accepted, peer: Peer, is_proxy: bool, watch: Watch) {
        match accepted {
            Accepted::Unix(stream) => {
                self.serving.serve(Box::new(stream), peer, Via { local: None, is_tls: false }, watch).await;
            }
            Accepted::Tcp(stream) => {
                prepare(&stream);
                let Ok(local) = stream.local_addr() else { return };
                let via = Via { local: Some(local), is_tls: self.tls.is_some() };
                let Some(tls) = &self.tls else {
                    return self.serving.serve(Box::new(stream), peer, via, watch).await;
                };
                let handshake = async {
                    let first = first_byte(&stream).await?;
                    if first != TLS_HANDSHAKE {
                        turn_away(stream, NO_TLS).await;
                        return None;
                    }
                    // A handshake costs a signature: that is what a turn is for.
                    if !is_proxy {
                        self.take_turn(&peer, &watch).await?;
                    }
                    secured(tls, stream).await
                };
                let handshake = tokio::time::timeout(self.serving.limits.tls, handshake);
                if let Ok(Some(stream)) = handshake.await {
                    self.serving.serve(stream, peer, via, watch).await;
                }
            }
        }
    }

    /// Waits for a turn of the peer's to shake hands; none where it has too many.
    async fn take_turn(&self, peer: &Peer, watch: &Watch) -> Option<()> {
        let turn = self.handshakes.turn(Origin::of(peer));
        if !matches!(turn, Ok((_, wait)) if wait.is_zero()) {
            self.told_fast.write(|times| {
                tracing::warn!(
                    "a connection waits or is closed, since its peer begins too many: tls_handshakes_per_peer_per_second of [http.limits]{times}"
                );
            });
        }
        match turn {
            Ok((turn, wait)) => {
                watch.has_shaken_hands(turn);
                self.pause(Instant::now() + wait).await;
                Some(())
            }
            Err(_too_fast) => {
                telemetry::refused("connections");
                None
            }
        }
    }

    async fn pause(&self, until: Instant) {
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.serving.closing.cancelled() => {}
        }
    }
}

async fn accept(socket: &Socket) -> io::Result<(Accepted, Peer)> {
    match socket {
        Socket::Tcp(listener) => {
            let (stream, address) = listener.accept().await?;
            Ok((Accepted::Tcp(stream), Peer::Tcp(address)))
        }
        Socket::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let who = stream.peer_cred()?;
            Ok((Accepted::Unix(stream), Peer::Unix { uid: who.uid(), gid: who.gid(), pid: who.pid() }))
        }
    }
}

/// Whether an error is of the connection that was to be accepted, and not of the socket or this process.
fn is_of_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Small answers go out at once, and a peer whose host is gone is noticed. Where an option cannot be set, the connection works
/// without it.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    let _ = setsockopt(stream, sockopt::TcpKeepIdle, &SILENT_SECONDS);
    let _ = setsockopt(stream, sockopt::TcpUserTimeout, &SILENT_MS);
}

/// The first byte that comes; it is not taken.
async fn first_byte(stream: &TcpStream) -> Option<u8> {
    let mut first = [0];
    (stream.peek(&mut first).await.ok()? == 1).then_some(first[0])
}

/// The stream once it is secured; none for one that does not do it.
async fn secured(tls: &Tls, stream: TcpStream) -> Option<Box<dyn Stream>> {
    match tls.acceptor().accept(stream).await {
        Ok(stream) => Some(Box::new(stream)),
        Err(error) => {
            tracing::debug!("a handshake of TLS failed: {error}");
            None
        }
    }
}

/// Tells one that it is not let in, and closes.
async fn turn_away(mut stream: impl Stream, answer: &str) {
    let telling = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        // What it has sent is read, for what is unread at the end would take the answer back.
        tokio::io::copy(&mut stream.take(TURNED_AWAY_BYTES), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(TURNED_AWAY_WITHIN, telling).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_are_as_long_as_they_say() {
        for answer in [NO_PLACE, NO_TLS] {
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{answer}");
        }
    }
}
