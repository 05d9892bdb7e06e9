//! The clocks and limits of one execution.

use std::time::Duration;

use lockhouse_protocol::ConversationLimits;

/// Each of them.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionLimits {
    pub wall: Duration,
    /// One question of a server to a person, during which no other clock runs.
    pub question: Duration,
    /// From the soft interrupt to SIGKILL.
    pub grace: Duration,
    pub cpu: Duration,
    /// CPU time before it gives way to all other work. None: it never does.
    pub cpu_credit: Option<Duration>,
    pub memory_bytes: u64,
    pub conversation: ConversationLimits,
}
