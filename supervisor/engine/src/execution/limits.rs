//! The clocks and limits of one execution.

use std::time::Duration;

use lockhouse_protocol::{ConversationLimits, ExceededLimit, LOOKUPS_MAX};

use super::ending::Limit;

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

impl ExecutionLimits {
    /// The limit of calls, questions or output, once it is reached.
    pub(super) fn exceeded(&self, limit: ExceededLimit) -> Limit {
        let ConversationLimits { calls, output_bytes, .. } = self.conversation;
        Limit::amount(match limit {
            ExceededLimit::Calls => format!("tool call limit of {calls} reached"),
            ExceededLimit::Lookups => format!("limit of {LOOKUPS_MAX} questions about tools reached"),
            ExceededLimit::Output => format!("output limit of {} KiB reached", output_bytes / 1024),
        })
    }

    /// The limit of CPU time, once it is reached.
    pub(super) fn cpu_reached(&self) -> Limit {
        Limit::time(format!("CPU time limit of {} s reached", self.cpu.as_secs()))
    }

    /// The limit of memory, once it is reached.
    pub(super) fn memory_reached(&self) -> Limit {
        Limit::memory(format!("memory limit of {} MiB reached", self.memory_bytes / (1024 * 1024)))
    }
}
