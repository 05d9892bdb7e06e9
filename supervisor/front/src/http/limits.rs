//! What strangers and clients may use of the door.

use std::time::Duration;

/// `[http.limits]`
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// At one time, of everybody.
    pub connections: usize,
    /// At one time, of one address, or of one user over a Unix domain socket.
    pub connections_per_peer: usize,
    /// At one time, of everybody, on which no request was admitted yet.
    pub unauthenticated_connections: usize,
    /// Requests of one address, or of one user, in a second, that are answered without having been admitted: the answers to
    /// further ones are put off.
    pub unauthenticated_requests_per_peer_per_second: u32,
    /// Handshakes of TLS of one address in a second after which no request was admitted: further ones wait, or are closed.
    pub tls_handshakes_per_peer_per_second: u32,
    /// From the first byte of a connection until the handshake of TLS is done.
    pub tls: Duration,
    /// From when a connection is there, or from the first byte of a further request, until the head of a request is whole.
    pub head: Duration,
    /// For the rest of a request.
    pub body: Duration,
    /// Without a request.
    pub keep_alive: Duration,
    /// Without a byte of an answer being taken.
    pub stall: Duration,
    /// Header lines of a request.
    pub headers: usize,
    /// Of the head of a request.
    pub head_bytes: usize,
    /// Requests at one time on a connection of HTTP/2.
    pub streams: u32,
    pub body_bytes: usize,
    /// JSON values of a body.
    pub body_values: usize,
    /// Of all bodies that are being read at one time, besides a little of each.
    pub bodies_bytes: usize,
    /// MCP sessions of the versions that have them.
    pub sessions: usize,
    pub sessions_per_client: usize,
    /// Without a request or a stream.
    pub session_idle: Duration,
}
