//! Answers connections for a process that cannot start, or that has failed.
//!
//! systemd starts the service for a connection that waits in a socket. If the process ends without accepting it, systemd
//! starts the service again at once, and after some starts closes the sockets for good: then not even a correct
//! configuration helps. So the process answers these connections before it ends, and stays for some seconds.

use std::os::fd::OwnedFd;
use std::time::Duration;

use lockhouse_base::listen::{Listener, Socket, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::has_inherited_sockets;
use super::listener::{adopt, inherited_duplicates};

/// How long connections are answered. With five starts in this time, systemd gives a service up by default
/// (`StartLimitIntervalSec=`, `StartLimitBurst=`).
const STAY: Duration = Duration::from_secs(10);
/// How long to wait for the first connection. If there is none, somebody has started the service by hand.
const FIRST: Duration = Duration::from_millis(200);
/// How long to wait for the end of a request, of which nothing is needed.
const REQUEST: Duration = Duration::from_secs(1);
const REQUEST_BYTES_MAX: u64 = 64 * 1024;
/// Number of connections that are answered at one time.
const CONNECTIONS_MAX: usize = 64;

const ANSWER: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 30\r\nConnection: close\r\n\
                      Content-Length: 45\r\n\r\nLockhouse cannot start, and its log says why\n";

/// The sockets that systemd passed, kept for a process that fails after it has begun to use them.
pub struct SpareSockets(Vec<OwnedFd>);

impl SpareSockets {
    /// Duplicates the sockets that systemd passed to this process; none if there are none.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self(if has_inherited_sockets() { inherited_duplicates() } else { Vec::new() })
    }

    /// Answers the connections to these sockets with the status 503. Returns at once if none waits.
    pub async fn refuse_connections(self) {
        let mut waiting = JoinSet::new();
        for listener in self.0.into_iter().filter_map(|socket| adopt(socket).ok()) {
            waiting.spawn(refuse(listener));
        }
        while waiting.join_next().await.is_some() {}
    }
}

async fn refuse(listener: Listener) {
    let begun = Instant::now();
    let mut until = begun + FIRST;
    let mut answers = JoinSet::new();
    while let Ok(Ok(stream)) = timeout_at(until, accept(&listener.socket)).await {
        until = begun + STAY;
        if Instant::now() >= until {
            break;
        }
        if answers.len() == CONNECTIONS_MAX {
            answers.join_next().await;
        }
        answers.spawn(answer(stream));
    }
    while answers.join_next().await.is_some() {}
}

async fn accept(socket: &Socket) -> std::io::Result<Box<dyn Stream>> {
    Ok(match socket {
        Socket::Tcp(listener) => Box::new(listener.accept().await?.0),
        Socket::Unix(listener) => Box::new(listener.accept().await?.0),
    })
}

async fn answer(mut stream: Box<dyn Stream>) {
    // A client that has gone needs no answer.
    let _ = timeout(REQUEST, stream.write_all(ANSWER.as_bytes())).await;
    let _ = stream.shutdown().await;
    // Closing a connection with unread bytes would take the answer away from the client.
    let (mut rest, mut sink) = (stream.take(REQUEST_BYTES_MAX), tokio::io::sink());
    let _ = timeout(REQUEST, tokio::io::copy(&mut rest, &mut sink)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_has_its_length() {
        let (head, body) = ANSWER.split_once("\r\n\r\n").expect("a body");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{}", body.len());
    }
}
