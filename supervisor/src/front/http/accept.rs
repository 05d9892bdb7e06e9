//! Takes connections in, as many as there may be.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Via;
use super::connection::Serving;
use super::counts::{Counted, Counts};
use super::listening::{Listening, Socket};
use super::seldom::Seldom;
use super::tls::Tls;
use super::watched::Stream;
use crate::access::Peer;
use crate::telemetry;

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
    pub(super) serving: Serving,
    pub(super) counts: Counts,
    pub(super) tls: Option<Arc<Tls>>,
    turned_away: Arc<Semaphore>,
    told_full: Arc<Seldom>,
    told_fast: Arc<Seldom>,
    told_failed: Arc<Seldom>,
}

impl Entrance {
    pub(super) fn new(serving: Serving, tls: Option<Arc<Tls>>) -> Self {
        let limits = &serving.limits;
        let counts = Counts::new(limits);
        let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
        let (told_full, told_fast, told_failed) = (Arc::default(), Arc::default(), Arc::default());
        Self { serving, counts, tls, turned_away, told_full, told_fast, told_failed }
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
                        .tell(|times| tracing::warn!("no connection can be accepted: {error}{times}"));
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        drop(listening);
        while connections.join_next().await.is_some() {}
    }

    async fn enter(self, accepted: Accepted, peer: Peer) {
        let Some(counted) = self.counts.take(&peer) else {
            self.told_full.tell(|times| {
                tracing::warn!(
                    "a connection was refused, since there are too many: connections of [http.limits]{times}"
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
            return;
        };
        let _connected = telemetry::connection();
        self.wait_for_turn(&counted).await;
        match accepted {
            Accepted::Unix(stream) => {
                self.serving.serve(Box::new(stream), peer, Via { local: None, is_tls: false }).await;
            }
            Accepted::Tcp(stream) => {
                prepare(&stream);
                let Ok(local) = stream.local_addr() else { return };
                let via = Via { local: Some(local), is_tls: self.tls.is_some() };
                match &self.tls {
                    None => self.serving.serve(Box::new(stream), peer, via).await,
                    Some(tls) => {
                        let handshake = tokio::time::timeout(self.serving.limits.tls, secured(tls, stream));
                        if let Ok(Some(stream)) = handshake.await {
                            self.serving.serve(stream, peer, via).await;
                        }
                    }
                }
            }
        }
    }

    /// Nothing is read from one that waits, and it costs a timer.
    async fn wait_for_turn(&self, counted: &Counted) {
        if counted.turn <= Instant::now() {
            return;
        }
        self.told_fast.tell(|times| {
            tracing::warn!(
                "a connection waits, since its peer begins too many: connections_per_peer_per_second of [http.limits]{times}"
            );
        });
        self.pause(counted.turn).await;
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

/// The stream once it is secured; none for one that does not do it.
async fn secured(tls: &Tls, stream: TcpStream) -> Option<Box<dyn Stream>> {
    let mut first = [0];
    if stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    if first[0] != TLS_HANDSHAKE {
        turn_away(stream, NO_TLS).await;
        return None;
    }
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
