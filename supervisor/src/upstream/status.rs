//! How a connection has fared so far, for the people who look after it.

use std::time::Duration;

/// What has been seen of one server since Lockhouse started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// The protocol version that was agreed on.
    pub(crate) era: Option<String>,
    /// Whether the server had to be started again with the older handshake.
    pub(crate) fell_back: bool,
    /// From the start to its list of tools, the last time.
    pub(crate) start: Option<Duration>,
    /// The last call that was answered.
    pub(crate) latency: Option<Duration>,
    /// Calls that were answered.
    pub(crate) answered: u64,
    /// Connections that were lost.
    pub(crate) reconnects: u64,
    /// The last failure, in words for a person, without secrets.
    pub(crate) last_error: Option<String>,
}
