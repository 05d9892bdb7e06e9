//! Status of the connection to an upstream server, for operators: times, counts and the last error.

use std::time::{Duration, Instant};

/// What is known about one server since Lockhouse started. The connection task records it; callers record their own
/// calls.
#[derive(Clone, Debug, Default)]
pub struct ConnectionStatus {
    /// When the most recent attempt to connect to the server began; `None` before the first.
    pub attempt_began: Option<Instant>,
    /// The negotiated MCP protocol version; `None` before the first connection.
    pub protocol_version: Option<String>,
    /// Whether the server had to be restarted with the older handshake.
    pub used_legacy_handshake: bool,
    /// Time from the start until the process was running, at the last start; `None` for HTTP servers.
    pub spawn_time: Option<Duration>,
    /// Time from the server's most recent start to the end of the MCP handshake; `None` before the first.
    pub handshake_time: Option<Duration>,
    /// Time from the server's most recent start until its tools were listed; `None` before the first.
    pub start_time: Option<Duration>,
    /// How long the most recently answered call took; `None` before the first answer.
    pub last_latency: Option<Duration>,
    /// The number of calls that the server has answered.
    pub answered_calls: u64,
    /// The number of connections to the server that were lost.
    pub reconnects: u64,
    /// The message of the most recent failure, with secrets redacted; `None` if there was none.
    pub last_error: Option<String>,
    /// How the server's process ended when Lockhouse last closed the connection; `None` if it did not.
    pub shutdown: Option<ShutdownMethod>,
}

/// What it took to end a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMethod {
    /// The process exited by itself once its connection was closed.
    Exited,
    /// The process exited on SIGTERM.
    Sigterm,
    /// The process was killed with SIGKILL.
    Sigkill,
}
