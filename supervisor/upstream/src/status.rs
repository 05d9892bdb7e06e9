//! How a connection has fared so far, for the people who look after it.

use std::time::{Duration, Instant};

/// What has been seen of one server since Lockhouse started. The task that holds its connection notes it; what calls come to, callers
/// note themselves.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// When the last attempt to connect began.
    pub begun: Option<Instant>,
    /// The protocol version that was agreed on.
    pub era: Option<String>,
    /// Whether the server had to be started again with the older handshake.
    pub fell_back: bool,
    /// From the start to a process that runs, the last time; HTTP servers have none.
    pub spawned: Option<Duration>,
    /// From the start to the end of the handshake, the last time.
    pub handshake: Option<Duration>,
    /// From the start to its list of tools, the last time.
    pub start: Option<Duration>,
    /// The last call that was answered.
    pub latency: Option<Duration>,
    /// Calls that were answered.
    pub answered: u64,
    /// Connections that were lost.
    pub reconnects: u64,
    /// The last failure, in words for a person, without secrets.
    pub last_error: Option<String>,
    /// How the last connection was ended, if it was ended by us.
    pub ending: Option<Ending>,
}

/// What it took to end a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing but the end of the conversation.
    Left,
    /// SIGTERM.
    Terminated,
    /// SIGKILL.
    Killed,
}
