//! The state machine of a run: decides for each event what the run does next (the effect), without I/O.
//!
//! ```text
//! Waiting ──Begin──► Running ──deadline, or cancelled in a session──► Interrupted
//!                       │ │                                             │ │ │
//!                       │ └── limit, or cancelled ──► Stopping ◄────────┘ │ │
//!                       └── channel closed ─────────► Exiting  ◄──────────┘ │
//!                       └── Done ───────────────────► Finished ◄────────────┘
//! ```
//! In the phase `Interrupted`, the code may still finish normally until its grace time is over. In the phase
//! `Stopping`, only the output and the final message of the code are accepted. A worker that closed its channel must
//! exit, otherwise it is killed. Every run ends with one [`EndReason`].

mod deadline_and_interrupt;
mod event;
#[cfg(test)]
mod tests;

use std::time::Duration;

use lockhouse_protocol::{Action, Conversation, Exit, FromWorker, Job, Outcome, ToWorker};
use nix::sys::signal::Signal;

use deadline_and_interrupt::{Interruption, StopCause};
pub(super) use event::{ExecutionEffect, ExecutionEvent, WorkerExit};

use super::end_reason::{EndReason, reason_from_exit};
use super::limits::ExecutionLimits;

/// How long the supervisor waits for a worker that closed its channel to exit by itself.
/// Bound: workers and programs.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the supervisor waits for the zygote (the parent process) to report the exit status of a worker that exited or
/// was killed.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);

/// The phase of a run: its current state, on which the effect of an event depends.
#[derive(Debug)]
enum Phase {
    /// The worker has not received the code of the run yet. Threads of earlier runs in a session may have sent
    /// messages.
    Waiting,
    /// The worker executes the code of the run.
    Running,
    /// The code was interrupted for this cause. It may still finish normally until its grace time is over.
    Interrupted(Interruption),
    /// The code was interrupted, and the run ends for this cause. Until the grace time is over, only the output and the
    /// final message of the code are still accepted.
    Stopping(StopCause),
    /// The worker closed its channel, and its process has not exited yet. Contains the earlier interruption of the
    /// code, if there was one.
    Exiting(Option<Interruption>),
    /// The worker process has exited by itself, and the zygote (the parent process) has not reported its exit status
    /// yet. Contains the earlier interruption of the code, if there was one.
    Exited(Option<Interruption>),
    /// The worker process did not exit in time, and the supervisor killed it.
    Killed(Option<Interruption>),
    /// The worker reported that the code has ended. A session can use the worker again.
    Finished,
    /// The run ended, and its worker cannot be used again.
    Ended,
}

/// The state of one run. Its methods do no I/O.
#[derive(Debug)]
pub(super) struct StateMachine {
    phase: Phase,
    conversation: Conversation,
    limits: ExecutionLimits,
    in_session: bool,
    /// Bytes of output that the code of the run may still print.
    output_bytes_left: usize,
}

impl StateMachine {
    /// Creates the state of a run before its code is sent to the worker. `conversation` is the conversation with an
    /// idle worker, or with the paused worker of a session.
    pub(super) fn new(conversation: Conversation, limits: ExecutionLimits, in_session: bool) -> Self {
        let output_bytes_left = limits.conversation.output_bytes as usize;
        Self { phase: Phase::Waiting, conversation, limits, in_session, output_bytes_left }
    }

    /// Whether the worker's requests are answered in the current phase.
    pub(super) fn answers_requests(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Interrupted(_))
    }

    /// Whether the code is being stopped: only its final message and its output are still accepted.
    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping(_))
    }

    /// Whether the run only waits for the worker process to exit.
    pub(super) fn is_exiting(&self) -> bool {
        matches!(self.phase, Phase::Exiting(_) | Phase::Exited(_) | Phase::Killed(_))
    }

    /// Returns the conversation with the worker if the worker can execute another run of its session, otherwise `None`.
    pub(super) fn into_idle_conversation(self) -> Option<Conversation> {
        (self.in_session && matches!(self.phase, Phase::Finished)).then_some(self.conversation)
    }

    /// Returns the effect of an event. An event that has no meaning in the current phase has no effect.
    pub(super) fn on(&mut self, event: ExecutionEvent) -> ExecutionEffect {
        match event {
            ExecutionEvent::Begin(job) => self.begin(job),
            ExecutionEvent::Message(message) if self.is_stopping() => self.receive_final_message(message),
            ExecutionEvent::Message(message) => self.receive(message),
            ExecutionEvent::InvalidFrame(cause) => self.end_with(EndReason::ProtocolViolation(cause)),
            ExecutionEvent::ReplyReady(call, reply) => match self.conversation.reply(call) {
                true => ExecutionEffect::Send(ToWorker::Reply { call, reply }),
                false => ExecutionEffect::Nothing,
            },
            ExecutionEvent::StopRequested(cause) => self.on_stop_requested(cause),
            ExecutionEvent::DeadlineReached => self.on_deadline(),
            ExecutionEvent::TimerExpired { has_exited } => self.on_timer_expired(has_exited),
            ExecutionEvent::CpuLimitReached if self.answers_requests() => {
                ExecutionEffect::Signal(Signal::SIGXCPU)
            }
            ExecutionEvent::CpuGraceExpired if self.answers_requests() => {
                self.end_with(EndReason::Limit(self.limits.cpu_reached(), None))
            }
            ExecutionEvent::CpuLimitReached | ExecutionEvent::CpuGraceExpired => ExecutionEffect::Nothing,
            ExecutionEvent::ChannelClosed => self.await_exit(),
        }
    }

    /// Returns the end reason of a run whose worker process exited. `exited` is `None` if the exit status is unknown,
    /// because the zygote (the parent process) exited too.
    pub(super) fn exited(&mut self, exited: Option<WorkerExit>) -> EndReason {
        let our_kill = Exit::Signal(Signal::SIGKILL as i32);
        match (std::mem::replace(&mut self.phase, Phase::Ended), exited) {
            // A process that was killed by our SIGKILL had not exited in time. Any other exit status means that it
            // exited by itself.
            (Phase::Killed(cause), exited) if exited.is_none_or(|exited| exited.exit == our_kill) => {
                reason_after_kill(cause)
            }
            (Phase::Exiting(Some(cause)) | Phase::Exited(Some(cause)) | Phase::Killed(Some(cause)), _) => {
                cause.end_reason(None)
            }
            (_, Some(exited)) => self.reason_from_worker_exit(exited),
            (_, None) => EndReason::Killed {
                message: "its zygote exited, and the worker with it".into(),
                is_attack: false,
            },
        }
    }

    fn begin(&mut self, job: Job) -> ExecutionEffect {
        if !self.conversation.start_run(job.session) {
            return self.end_with(EndReason::ProtocolViolation("it was not idle".into()));
        }
        self.phase = Phase::Running;
        ExecutionEffect::Send(ToWorker::Run(job))
    }

    fn receive(&mut self, message: FromWorker) -> ExecutionEffect {
        match self.conversation.receive(message) {
            Ok(Action::Append(stream, text)) => {
                self.output_bytes_left = self.output_bytes_left.saturating_sub(text.len());
                ExecutionEffect::Append(stream, text)
            }
            Ok(Action::Answer(call, request)) => ExecutionEffect::AskGate(call, request),
            Ok(Action::Finish(outcome)) => self.finish(outcome),
            Ok(Action::Stop(limit)) => {
                let limit = self.limits.exceeded(limit);
                match self.phase {
                    Phase::Running | Phase::Interrupted(Interruption::Deadline) => {
                        self.interrupt(Phase::Stopping(StopCause::Limit(limit)))
                    }
                    // Without code there is no location to report, and cancelled code had its grace time already.
                    _ => self.end_with(EndReason::Limit(limit, None)),
                }
            }
            Ok(Action::Verify | Action::SealFailed(_)) => {
                self.end_with(EndReason::ProtocolViolation("it reported its seal twice".into()))
            }
            Err(violation) => self.end_with(EndReason::ProtocolViolation(violation.to_string())),
        }
    }

    /// Processes a message of code that is being stopped. Accepts its final message, which reports the location of
    /// the code, and its output within the limit. Ignores its requests.
    fn receive_final_message(&mut self, message: FromWorker) -> ExecutionEffect {
        match message {
            FromWorker::Done(outcome) => self.finish(outcome),
            FromWorker::Output { stream, text } if text.len() <= self.output_bytes_left => {
                self.output_bytes_left -= text.len();
                ExecutionEffect::Append(stream, text)
            }
            _ => ExecutionEffect::Nothing,
        }
    }

    fn finish(&mut self, outcome: Outcome) -> ExecutionEffect {
        let next = if self.is_stopping() { Phase::Ended } else { Phase::Finished };
        let phase = std::mem::replace(&mut self.phase, next);
        ExecutionEffect::End(match (phase, outcome) {
            (Phase::Stopping(cause), Outcome::Interrupted(error)) => cause.end_reason(Some(error)),
            (Phase::Stopping(cause), _) => cause.end_reason(None),
            (Phase::Interrupted(cause), Outcome::Interrupted(error)) => cause.end_reason(Some(error)),
            (Phase::Interrupted(cause @ Interruption::Cancelled(_)), _) => cause.end_reason(None),
            (_, Outcome::Value(value)) => EndReason::Value(value),
            (_, Outcome::NoValue(advice)) => EndReason::NoValue(advice),
            // The supervisor did not interrupt the code: the code raised the interrupt itself.
            (_, Outcome::Error(error) | Outcome::Interrupted(error)) => EndReason::Error(error),
            (_, Outcome::CpuLimit(error)) => EndReason::Limit(self.limits.cpu_reached(), Some(error)),
            (_, Outcome::MemoryLimit(error)) => EndReason::Limit(self.limits.memory_reached(), Some(error)),
        })
    }

    fn await_exit(&mut self) -> ExecutionEffect {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Stopping(cause) => return ExecutionEffect::End(cause.end_reason(None)),
            Phase::Interrupted(cause) => self.phase = Phase::Exiting(Some(cause)),
            _ => self.phase = Phase::Exiting(None),
        }
        ExecutionEffect::Wait(EXIT_TIMEOUT)
    }

    /// Ends the run for `reason`, unless a cancellation or a limit is already ending the run. In that case, the run
    /// ends for the cancellation or the limit.
    fn end_with(&mut self, reason: EndReason) -> ExecutionEffect {
        ExecutionEffect::End(match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Stopping(cause) => cause.end_reason(None),
            Phase::Interrupted(cause @ Interruption::Cancelled(_)) => cause.end_reason(None),
            _ => reason,
        })
    }

    /// Returns the end reason for a worker that exited without a final message, from its exit status and resource use.
    fn reason_from_worker_exit(&self, exited: WorkerExit) -> EndReason {
        match exited {
            // The kernel sends SIGKILL at the hard CPU limit to a process that ignored SIGXCPU at the soft limit.
            WorkerExit { cpu, .. } if cpu >= self.limits.cpu => {
                EndReason::Limit(self.limits.cpu_reached(), None)
            }
            exited if self.is_out_of_memory(&exited) => EndReason::Limit(self.limits.memory_reached(), None),
            WorkerExit { exit, .. } => reason_from_exit(exit),
        }
    }

    /// Whether the worker process died because it ran out of memory: the kernel reports it, or the interpreter
    /// crashed while most of its permitted memory was in use.
    fn is_out_of_memory(&self, exited: &WorkerExit) -> bool {
        let aborted = matches!(exited.exit, Exit::Signal(number)
            if [Signal::SIGABRT, Signal::SIGSEGV, Signal::SIGBUS].iter().any(|signal| *signal as i32 == number));
        exited.was_out_of_memory || aborted && exited.peak_growth_bytes >= self.limits.memory_bytes / 4 * 3
    }
}

/// Returns the end reason of a run whose worker closed its channel and had to be killed.
fn reason_after_kill(cause: Option<Interruption>) -> EndReason {
    match cause {
        Some(cause @ Interruption::Cancelled(_)) => cause.end_reason(None),
        _ => EndReason::ProtocolViolation("it closed its channel and did not exit".into()),
    }
}
