//! Limits of the HTTP server.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Maximum number of connections that are being refused with a 503 response at the same time. Further connections are
/// closed without a response.
/// Bound: AI clients.
pub(super) const REFUSALS_MAX: usize = 64;

/// The limits of the HTTP server: the table `[http.limits]`, and the timeouts of connections and requests.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct HttpLimits {
    /// Maximum number of open connections of all clients together.
    pub connections: usize,
    /// Maximum number of open connections of one address, or of one user over a Unix domain socket.
    pub connections_per_peer: usize,
    /// Maximum number of open connections, of all clients together, on which no request has been authenticated yet.
    pub unauthenticated_connections: usize,
    /// Maximum number of requests per second, for each address or user, that are answered without authentication (wrong
    /// or missing credentials, a refused host, a public endpoint). When there are more, the responses to such requests
    /// are delayed.
    pub unauthenticated_requests_per_peer_per_second: u32,
    /// Maximum number of TLS handshakes per second of one address that are not followed by an authenticated request.
    /// Further handshakes wait or are refused.
    pub tls_handshakes_per_peer_per_second: u32,
    /// Timeout from the acceptance of a connection until its TLS handshake is complete.
    pub tls: Duration,
    /// Timeout for receiving a request head, from the start of the connection for its first request, and from the first
    /// byte of the head for later requests.
    pub head: Duration,
    /// Timeout for receiving a request body.
    pub body: Duration,
    /// Time after which a connection is closed if no request is in flight on it and none begins.
    pub keep_alive: Duration,
    /// Time after which a connection is closed if the client stops reading a response.
    pub stall: Duration,
    /// Maximum number of header lines in a request.
    pub headers: usize,
    /// Maximum size of a request head, in bytes.
    pub head_bytes: usize,
    /// Maximum number of concurrent requests (streams) on an HTTP/2 connection.
    pub streams: u32,
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Maximum number of JSON values in a request body.
    pub body_values: usize,
    /// Maximum total size in bytes of large request bodies that are being received or parsed at the same time.
    pub bodies_bytes: usize,
    /// Maximum number of open MCP sessions of all clients together.
    pub sessions: usize,
    /// Maximum number of open MCP sessions of one client.
    pub sessions_per_client: usize,
    /// Time after which another front takes the place of one, and number of requests to the engine after which it does.
    pub front_lifetime: Duration,
    pub front_requests: u64,
    /// Time after which an MCP session without requests and streams is closed.
    pub session_idle: Duration,
}
