//! Status of a connection, for operators.

use std::time::{Duration, Instant};

/// What is known about one server since Lockhouse started. The connection task records it; callers record their own
/// calls.
#[derive(Clone, Debug, Default)]
pub struct ConnectionStatus {
    /// When the last attempt to connect began.
    pub attempt_began: Option<Instant>,
    /// The negotiated protocol version.
    pub protocol_version: Option<String>,
    /// Whether the server had to be restarted with the older handshake.
    pub used_legacy_handshake: bool,
    /// Time from the start until the process was running, at the last start; `None` for HTTP servers.
    pub spawn_time: Option<Duration>,
    /// Time from the start to the end of the handshake, at the last start.
    pub handshake_time: Option<Duration>,
    /// Time from the start to the list of tools, at the last start.
    pub start_time: Option<Duration>,
    /// How long the last answered call took.
    pub last_latency: Option<Duration>,
    /// The number of answered calls.
    pub answered_calls: u64,
    /// The number of connections that were lost.
    pub reconnects: u64,
    /// The last failure, with secrets redacted.
    pub last_error: Option<String>,
    /// How the last connection ended, if Lockhouse closed it.
    pub shutdown: Option<ShutdownMethod>,
}

/// What it took to end a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMethod {
    /// It exited by itself once its connection was closed.
    Exited,
    /// It exited on SIGTERM.
    Sigterm,
    /// It was killed with SIGKILL.
    Sigkill,
}
