//! Limits on time, CPU, memory, calls and output of one execution.

use std::time::Duration;

use lockhouse_protocol::{ConversationLimits, ExceededLimit, LOOKUPS_MAX};

use super::end_reason::ReachedLimit;

/// The time and resource limits of one execution of submitted code.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionLimits {
    pub wall: Duration,
    /// Time for a user to answer one question of an upstream server. The deadline of the run is paused meanwhile.
    pub question: Duration,
    /// Grace time between SIGINT, which interrupts the code, and SIGKILL to its worker.
    pub grace: Duration,
    pub cpu: Duration,
    /// CPU time after which the run is scheduled as idle work. `None` for a run that is never deprioritised.
    pub cpu_credit: Option<Duration>,
    pub memory_bytes: u64,
    pub conversation: ConversationLimits,
}

impl ExecutionLimits {
    /// Returns the error for a run that reached the limit on calls, on lookups of tools, or on output.
    pub(super) fn exceeded(&self, limit: ExceededLimit) -> ReachedLimit {
        let ConversationLimits { calls, output_bytes, .. } = self.conversation;
        ReachedLimit::amount(match limit {
            ExceededLimit::Calls => format!("tool call limit of {calls} reached"),
            ExceededLimit::Lookups => format!("limit of {LOOKUPS_MAX} questions about tools reached"),
            ExceededLimit::Output => format!("output limit of {} KiB reached", output_bytes / 1024),
        })
    }

    /// Returns the error for a run that reached the limit on CPU time.
    pub(super) fn cpu_reached(&self) -> ReachedLimit {
        ReachedLimit::time(format!("CPU time limit of {} s reached", self.cpu.as_secs()))
    }

    /// Returns the error for a run that reached the limit on memory.
    pub(super) fn memory_reached(&self) -> ReachedLimit {
        ReachedLimit::memory(format!("memory limit of {} MiB reached", self.memory_bytes / (1024 * 1024)))
    }
}
