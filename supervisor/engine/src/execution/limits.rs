//! Limits on time, CPU, memory, calls and output of one execution.

use std::time::Duration;

use lockhouse_protocol::{ConversationLimits, ExceededLimit, LOOKUPS_MAX};

use super::end_reason::ReachedLimit;

/// The time and resource limits of one execution of submitted code.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionLimits {
    /// Time limit of the run.
    pub wall: Duration,
    /// The time limit that the request asked for. `None` if it asked for none.
    pub wall_asked: Option<Duration>,
    /// The configured maximum of `wall`.
    pub wall_max: Duration,
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

    /// Returns the error for a run that reached its time limit. The message names the time that the request asked for, if
    /// the configuration does not permit it; the hint says that a longer time is permitted, if the request asked for less.
    pub(super) fn time_reached(&self) -> ReachedLimit {
        let (wall, max) = (self.wall.as_secs_f32(), self.wall_max.as_secs_f32());
        let mut limit = ReachedLimit::time(format!("the code did not end within {wall} s"));
        match self.wall_asked {
            Some(asked) if asked > self.wall_max => {
                let asked = asked.as_secs_f32();
                limit.message.push_str(&format!(" ({asked} s was asked for; at most {max} s is allowed)"));
            }
            Some(_) if self.wall < self.wall_max => {
                limit.hint = format!("timeout_s may be up to {max}; or {}", limit.hint).into();
            }
            _ => {}
        }
        limit
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
