//! Interrupts the code of a run at its deadline, when the run is cancelled, and when the run exceeds a limit on its
//! messages, such as the number of calls.
//!
//! The code is interrupted with SIGINT, so that it can report its location. If the code does not end within the grace
//! time, the run ends and its worker is killed.

use lockhouse_protocol::CodeError;

use super::{ExecutionEffect, Phase, REAP_TIMEOUT, StateMachine, reason_after_kill};
use crate::execution::cancellation::Cancellation;
use crate::execution::end_reason::{EndReason, ReachedLimit};

/// Why the code of a run was interrupted. The code may still finish within its grace time.
#[derive(Clone, Debug)]
pub(super) enum Interruption {
    /// The run reached its deadline.
    Deadline,
    /// A run in a session was cancelled. The code gets time to clean up, so that the session can continue.
    Cancelled(Cancellation),
}

/// Why the code of a run is being stopped. Only its output and its final message are still accepted.
#[derive(Debug)]
pub(super) enum StopCause {
    /// The run exceeded this limit on its messages, such as the number of calls or the size of its output.
    Limit(ReachedLimit),
    /// A run outside of sessions was cancelled for this cause.
    Cancelled(Cancellation),
}

impl Interruption {
    pub(super) fn end_reason(self, location: Option<CodeError>) -> EndReason {
        match self {
            Self::Deadline => EndReason::Timeout(location),
            Self::Cancelled(cause) => EndReason::Cancelled(cause, location),
        }
    }
}

impl StopCause {
    pub(super) fn end_reason(self, location: Option<CodeError>) -> EndReason {
        match self {
            Self::Limit(limit) => EndReason::Limit(limit, location),
            Self::Cancelled(cause) => EndReason::Cancelled(cause, location),
        }
    }
}

impl StateMachine {
    /// Handles the event that the run reached its deadline: interrupts the code if it is still running.
    pub(super) fn on_deadline(&mut self) -> ExecutionEffect {
        match self.phase {
            Phase::Running => self.interrupt(Phase::Interrupted(Interruption::Deadline)),
            _ => ExecutionEffect::Nothing,
        }
    }

    pub(super) fn on_stop_requested(&mut self, cause: Cancellation) -> ExecutionEffect {
        match self.phase {
            Phase::Running if self.in_session => {
                self.interrupt(Phase::Interrupted(Interruption::Cancelled(cause)))
            }
            Phase::Running => self.interrupt(Phase::Stopping(StopCause::Cancelled(cause))),
            Phase::Interrupted(Interruption::Deadline) => self.end_with(EndReason::Cancelled(cause, None)),
            _ => ExecutionEffect::Nothing,
        }
    }

    /// Interrupts the code with SIGINT and starts the grace time, in which the code can report its location. `next`
    /// is the new phase of the run.
    pub(super) fn interrupt(&mut self, next: Phase) -> ExecutionEffect {
        self.phase = next;
        ExecutionEffect::Interrupt(self.limits.grace)
    }

    pub(super) fn on_timer_expired(&mut self, has_exited: bool) -> ExecutionEffect {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Interrupted(cause) => ExecutionEffect::End(cause.end_reason(None)),
            Phase::Stopping(cause) => ExecutionEffect::End(cause.end_reason(None)),
            Phase::Killed(cause) => ExecutionEffect::End(reason_after_kill(cause)),
            Phase::Exited(cause) => {
                self.phase = Phase::Exited(cause);
                ExecutionEffect::End(self.exited(None))
            }
            // A zygote on a busy machine may report an exit late: the kernel knows whether the process has exited.
            Phase::Exiting(cause) if has_exited => {
                self.phase = Phase::Exited(cause);
                ExecutionEffect::Wait(REAP_TIMEOUT)
            }
            Phase::Exiting(cause) => {
                self.phase = Phase::Killed(cause);
                ExecutionEffect::Kill(REAP_TIMEOUT)
            }
            phase => {
                self.phase = phase;
                ExecutionEffect::Nothing
            }
        }
    }
}
