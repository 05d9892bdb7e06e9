//! Enforces the deadline of a run, and stops a run that reached a limit or was cancelled.
//!
//! Each of these first interrupts the code with SIGINT, so that the code can report its location. When the grace time
//! is over, the run ends and its worker is killed.

use lockhouse_protocol::CodeError;
use nix::sys::signal::Signal;

use super::{Effect, Phase, REAP_TIMEOUT, StateMachine, reason_after_kill};
use crate::execution::cancellation::Cancellation;
use crate::execution::end_reason::{EndReason, ReachedLimit};

/// Why code was interrupted that may still finish within its grace time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interruption {
    Deadline,
    /// The run was cancelled in a session. The code gets time to clean up, so that the session can continue.
    Cancelled(Cancellation),
}

/// Why code is being stopped. Only its final message is still accepted.
#[derive(Debug)]
pub(super) enum StopCause {
    Limit(ReachedLimit),
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
    /// Interrupts code that still runs at its deadline.
    pub(super) fn on_deadline(&mut self) -> Effect {
        match self.phase {
            Phase::Running => self.interrupt(Phase::Interrupted(Interruption::Deadline)),
            _ => Effect::Nothing,
        }
    }

    pub(super) fn on_stop_requested(&mut self, cause: Cancellation) -> Effect {
        match self.phase {
            Phase::Running if self.in_session => {
                self.interrupt(Phase::Interrupted(Interruption::Cancelled(cause)))
            }
            Phase::Running => self.interrupt(Phase::Stopping(StopCause::Cancelled(cause))),
            Phase::Interrupted(Interruption::Deadline) => self.end_with(EndReason::Cancelled(cause, None)),
            _ => Effect::Nothing,
        }
    }

    /// Sends SIGINT and starts the grace time, in which the code can report its location.
    pub(super) fn interrupt(&mut self, next: Phase) -> Effect {
        self.phase = next;
        Effect::SignalAndWait(Signal::SIGINT, self.limits.grace)
    }

    pub(super) fn on_timer_expired(&mut self) -> Effect {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Interrupted(cause) => Effect::End(cause.end_reason(None)),
            Phase::Stopping(cause) => Effect::End(cause.end_reason(None)),
            Phase::Killed(cause) => Effect::End(reason_after_kill(cause)),
            Phase::Exiting(cause) => {
                self.phase = Phase::Killed(cause);
                Effect::SignalAndWait(Signal::SIGKILL, REAP_TIMEOUT)
            }
            phase => {
                self.phase = phase;
                Effect::Nothing
            }
        }
    }
}
