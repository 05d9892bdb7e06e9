//! Status of the connection to an upstream server, for operators: times, counts and the last error.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The status of one upstream server since Lockhouse started. Callers record the statistics of answered calls; the
/// connection task records everything else.
#[derive(Clone, Debug, Default)]
pub struct ConnectionStatus {
    /// When the most recent attempt to connect to the server began; `None` before the first.
    pub attempt_began: Option<Instant>,
    /// The MCP protocol version that was negotiated at the most recent start; `None` until the handshake has ended.
    pub protocol_version: Option<String>,
    /// Whether the most recent successful start used the older MCP handshake (`initialize`), because the configuration
    /// requires it or because an attempt with the newest protocol version had failed.
    pub used_legacy_handshake: bool,
    /// Whether the server has asked its user a question by a request of its own, which does not say for which call.
    pub asks_by_request: bool,
    /// Time from the server's most recent start until the server's process was running; `None` before that, and for
    /// HTTP servers.
    pub spawn_time: Option<Duration>,
    /// Time from the server's most recent start to the end of its MCP handshake; `None` until the handshake has ended.
    pub handshake_time: Option<Duration>,
    /// How long the server's most recent successful start took. This includes the wait for the limit on concurrent
    /// starts, and the listing of the server's tools. `None` before the first successful start.
    pub start_time: Option<Duration>,
    /// How long the most recently answered call took; `None` before the first answer.
    pub last_latency: Option<Duration>,
    /// The number of calls that the server has answered.
    pub answered_calls: u64,
    /// The number of connections to the server that were lost, because the server ended them or because they failed.
    pub reconnects: u64,
    /// The message of the most recent failure, with secrets redacted; `None` if there was none.
    pub last_error: Option<String>,
    /// How the server's process ended when Lockhouse closed the connection; `None` if Lockhouse has not closed it, and
    /// for HTTP servers.
    pub shutdown: Option<ShutdownMethod>,
}

/// Which step was needed to end a server's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShutdownMethod {
    /// The process exited by itself once its connection was closed.
    Exited,
    /// The process exited on SIGTERM.
    Sigterm,
    /// The process did not exit on SIGTERM and was killed with SIGKILL.
    Sigkill,
}
