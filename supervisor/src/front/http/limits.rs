//! What strangers and clients may use of the door.

use std::time::Duration;

/// `[http.limits]`
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpLimits {
    /// At one time, of everybody.
    pub(crate) connections: usize,
    /// At one time, of one address, or of one user over a Unix domain socket.
    pub(crate) connections_per_peer: usize,
    /// At one time, of everybody, on which no request was admitted yet.
    pub(crate) unauthenticated_connections: usize,
    /// Requests of one address, or of one user, in a second, that are answered without having been admitted: the answers to
    /// further ones are put off.
    pub(crate) unauthenticated_requests_per_peer_per_second: u32,
    /// Handshakes of TLS of one address in a second after which no request was admitted: further ones wait, or are closed.
    pub(crate) tls_handshakes_per_peer_per_second: u32,
    /// From the first byte of a connection until the handshake of TLS is done.
    pub(crate) tls: Duration,
    /// From when a connection is there, or from the first byte of a further request, until the head of a request is whole.
    pub(crate) head: Duration,
    /// For the rest of a request.
    pub(crate) body: Duration,
    /// Without a request.
    pub(crate) keep_alive: Duration,
    /// Without a byte of an answer being taken.
    pub(crate) stall: Duration,
    /// Header lines of a request.
    pub(crate) headers: usize,
    /// Of the head of a request.
    pub(crate) head_bytes: usize,
    /// Requests at one time on a connection of HTTP/2.
    pub(crate) streams: u32,
    pub(crate) body_bytes: usize,
    /// JSON values of a body.
    pub(crate) body_values: usize,
    /// Of all bodies that are being read at one time, besides a little of each.
    pub(crate) bodies_bytes: usize,
    /// MCP sessions of the versions that have them.
    pub(crate) sessions: usize,
    pub(crate) sessions_per_client: usize,
    /// Without a request or a stream.
    pub(crate) session_idle: Duration,
}
