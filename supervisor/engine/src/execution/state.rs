//! What a run does next, without I/O: an event comes in, and its one effect goes out.
//!
//! ```text
//! Waiting ──Begin──► Running ──deadline, or cancelled in a session──► Interrupted
//!                       │ │                                             │ │ │
//!                       │ └── limit, or cancelled ──► Stopping ◄────────┘ │ │
//!                       └── channel closed ─────────► Leaving  ◄──────────┘ │
//!                       └── Done ───────────────────► Finished ◄────────────┘
//! ```
//! Code that is interrupted may still finish as it likes until its grace time is over. Of code that is stopped only its last
//! words count. A worker whose channel is closed leaves by itself, or is killed. Every phase ends in one [`Ending`].

mod event;
#[cfg(test)]
mod tests;

use std::time::Duration;

use lockhouse_protocol::{Action, CodeError, Conversation, Exit, FromWorker, Job, Outcome, ToWorker};
use nix::sys::signal::Signal;

pub(super) use event::{Effect, Event, Exited};

use super::ending::{Ending, Limit, killed};
use super::limits::ExecutionLimits;
use super::stop::Cancellation;

/// How long a worker that closed its channel may take to end by itself.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long the zygote may take to reap a worker that was killed.
const REAP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why code was interrupted that may still finish.
#[derive(Clone, Copy, Debug)]
enum Interruption {
    Deadline,
    /// In a session: what it has gathered is worth a moment.
    Cancelled(Cancellation),
}

/// Why code is stopped, of which only the last words still count.
#[derive(Debug)]
enum StopCause {
    Limit(Limit),
    Cancelled(Cancellation),
}

impl Interruption {
    fn ending(self, place: Option<CodeError>) -> Ending {
        match self {
            Self::Deadline => Ending::Timeout(place),
            Self::Cancelled(why) => Ending::Cancelled(why, place),
        }
    }
}

impl StopCause {
    fn ending(self, place: Option<CodeError>) -> Ending {
        match self {
            Self::Limit(limit) => Ending::Limit(limit, place),
            Self::Cancelled(why) => Ending::Cancelled(why, place),
        }
    }
}

#[derive(Debug)]
enum Phase {
    /// The worker has no code yet. Threads of a session may have said something since its last run.
    Waiting,
    Running,
    Interrupted(Interruption),
    Stopping(StopCause),
    /// The channel is closed, and the process may still be there; why the code had been interrupted before that.
    Leaving(Option<Interruption>),
    /// The process did not leave, and was killed.
    Killed(Option<Interruption>),
    /// The worker said itself that the code is over.
    Finished,
    /// The run was ended otherwise.
    Ended,
}

/// Where a run stands.
#[derive(Debug)]
pub(super) struct State {
    phase: Phase,
    conversation: Conversation,
    limits: ExecutionLimits,
    in_session: bool,
    /// Bytes of output that the code has left.
    room: usize,
}

impl State {
    /// Before the code is sent. The conversation is that with an idle worker, or with one that rests.
    pub(super) fn new(conversation: Conversation, limits: ExecutionLimits, in_session: bool) -> Self {
        let room = limits.conversation.output_bytes as usize;
        Self { phase: Phase::Waiting, conversation, limits, in_session, room }
    }

    /// The worker's requests are answered.
    pub(super) fn is_conversing(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Interrupted(_))
    }

    /// Only the last words of the code are heard.
    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping(_))
    }

    /// The exit of the process is waited for, and nothing else of it.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving(_) | Phase::Killed(_))
    }

    /// The conversation, if a session can go on with it.
    pub(super) fn into_resting(self) -> Option<Conversation> {
        (self.in_session && matches!(self.phase, Phase::Finished)).then_some(self.conversation)
    }

    /// What is to be done about an event. Events that mean nothing in a phase have no effect in it.
    pub(super) fn on(&mut self, event: Event) -> Effect {
        match event {
            Event::Begin(job) => self.begin(job),
            Event::Message(message) if self.is_stopping() => self.hear_last_words(message),
            Event::Message(message) => self.hear(message),
            Event::InvalidFrame(why) => self.end(Ending::Broken(why)),
            Event::Replied(call, reply) => match self.conversation.reply(call) {
                true => Effect::Send(ToWorker::Reply { call, reply }),
                false => Effect::Nothing,
            },
            Event::StopWanted(why) => self.stop_for(why),
            Event::WallClockEnded => match self.phase {
                Phase::Running => self.interrupt(Phase::Interrupted(Interruption::Deadline)),
                _ => Effect::Nothing,
            },
            Event::TimerEnded => self.end_wait(),
            Event::CpuUsedUp if self.is_conversing() => Effect::Signal(Signal::SIGXCPU),
            Event::CpuGraceUsedUp if self.is_conversing() => {
                self.end(Ending::Limit(self.limits.cpu_reached(), None))
            }
            Event::CpuUsedUp | Event::CpuGraceUsedUp => Effect::Nothing,
            Event::ChannelClosed => self.leave(),
        }
    }

    /// The process has ended, which ends the run. None: nobody knows how, since its zygote has ended as well.
    pub(super) fn exited(&mut self, exited: Option<Exited>) -> Ending {
        let our_kill = Exit::Signal(Signal::SIGKILL as i32);
        match (std::mem::replace(&mut self.phase, Phase::Ended), exited) {
            // How it ended tells whether it had gone on: one that ended by itself was not killed.
            (Phase::Killed(why), exited) if exited.is_none_or(|exited| exited.exit == our_kill) => {
                went_on(why)
            }
            (Phase::Leaving(Some(why)) | Phase::Killed(Some(why)), _) => why.ending(None),
            (_, Some(exited)) => self.died(exited),
            (_, None) => {
                Ending::Killed { words: "its zygote ended, and the worker with it".into(), attack: false }
            }
        }
    }

    fn begin(&mut self, job: Job) -> Effect {
        if !self.conversation.run(job.session) {
            return self.end(Ending::Broken("it was not idle".into()));
        }
        self.phase = Phase::Running;
        Effect::Send(ToWorker::Run(job))
    }

    fn hear(&mut self, message: FromWorker) -> Effect {
        match self.conversation.receive(message) {
            Ok(Action::Append(stream, text)) => {
                self.room = self.room.saturating_sub(text.len());
                Effect::Append(stream, text)
            }
            Ok(Action::Answer(call, request)) => Effect::Ask(call, request),
            Ok(Action::Finish(outcome)) => self.finish(outcome),
            Ok(Action::Stop(limit)) => {
                let limit = self.limits.exceeded(limit);
                match self.phase {
                    Phase::Running | Phase::Interrupted(Interruption::Deadline) => {
                        self.interrupt(Phase::Stopping(StopCause::Limit(limit)))
                    }
                    // Before its code it has none that could say where it is, and one that was cancelled has had its moment.
                    _ => self.end(Ending::Limit(limit, None)),
                }
            }
            Ok(Action::Verify | Action::GiveUp(_)) => self.end(Ending::Broken("it was sealed twice".into())),
            Err(violation) => self.end(Ending::Broken(violation.to_string())),
        }
    }

    /// Where the code is that is stopped. What it has printed by then is kept as far as there is room, and what it asks for is
    /// not done.
    fn hear_last_words(&mut self, message: FromWorker) -> Effect {
        match message {
            FromWorker::Done(outcome) => self.finish(outcome),
            FromWorker::Output { stream, text } if text.len() <= self.room => {
                self.room -= text.len();
                Effect::Append(stream, text)
            }
            _ => Effect::Nothing,
        }
    }

    fn finish(&mut self, outcome: Outcome) -> Effect {
        let next = if self.is_stopping() { Phase::Ended } else { Phase::Finished };
        let phase = std::mem::replace(&mut self.phase, next);
        Effect::End(match (phase, outcome) {
            (Phase::Stopping(cause), Outcome::Interrupted(error)) => cause.ending(Some(error)),
            (Phase::Stopping(cause), _) => cause.ending(None),
            (Phase::Interrupted(why), Outcome::Interrupted(error)) => why.ending(Some(error)),
            (Phase::Interrupted(why @ Interruption::Cancelled(_)), _) => why.ending(None),
            (_, Outcome::Value(value)) => Ending::Value(value),
            // Nobody interrupted it: the code raised that itself.
            (_, Outcome::Error(error) | Outcome::Interrupted(error)) => Ending::Error(error),
            (_, Outcome::CpuLimit(error)) => Ending::Limit(self.limits.cpu_reached(), Some(error)),
            (_, Outcome::MemoryLimit(error)) => Ending::Limit(self.limits.memory_reached(), Some(error)),
        })
    }

    fn stop_for(&mut self, why: Cancellation) -> Effect {
        match self.phase {
            Phase::Running if self.in_session => {
                self.interrupt(Phase::Interrupted(Interruption::Cancelled(why)))
            }
            Phase::Running => self.interrupt(Phase::Stopping(StopCause::Cancelled(why))),
            Phase::Interrupted(Interruption::Deadline) => self.end(Ending::Cancelled(why, None)),
            _ => Effect::Nothing,
        }
    }

    /// Has the code say where it is, for its grace time.
    fn interrupt(&mut self, next: Phase) -> Effect {
        self.phase = next;
        Effect::SignalAndWait(Signal::SIGINT, self.limits.grace)
    }

    fn end_wait(&mut self) -> Effect {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Interrupted(why) => Effect::End(why.ending(None)),
            Phase::Stopping(cause) => Effect::End(cause.ending(None)),
            Phase::Killed(why) => Effect::End(went_on(why)),
            Phase::Leaving(why) => {
                self.phase = Phase::Killed(why);
                Effect::SignalAndWait(Signal::SIGKILL, REAP_TIMEOUT)
            }
            phase => {
                self.phase = phase;
                Effect::Nothing
            }
        }
    }

    fn leave(&mut self) -> Effect {
        match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Stopping(cause) => return Effect::End(cause.ending(None)),
            Phase::Interrupted(why) => self.phase = Phase::Leaving(Some(why)),
            _ => self.phase = Phase::Leaving(None),
        }
        Effect::Wait(LEAVE_TIMEOUT)
    }

    /// Ends the run so, unless it is being ended already for a reason that counts more.
    fn end(&mut self, ending: Ending) -> Effect {
        Effect::End(match std::mem::replace(&mut self.phase, Phase::Ended) {
            Phase::Stopping(cause) => cause.ending(None),
            Phase::Interrupted(why @ Interruption::Cancelled(_)) => why.ending(None),
            _ => ending,
        })
    }

    /// The channel closed without a last word: what the kernel says of the end.
    fn died(&self, exited: Exited) -> Ending {
        match exited {
            // The kernel kills at the hard limit what ignores the signal at the soft one.
            Exited { cpu, .. } if cpu >= self.limits.cpu => Ending::Limit(self.limits.cpu_reached(), None),
            exited if self.lacked_memory(&exited) => Ending::Limit(self.limits.memory_reached(), None),
            Exited { exit, .. } => killed(exit),
        }
    }

    /// Whether a death was for want of memory: the kernel says so, or an interpreter that could not say it aborted when
    /// most of its memory was used.
    fn lacked_memory(&self, exited: &Exited) -> bool {
        let aborted = matches!(exited.exit, Exit::Signal(number)
            if [Signal::SIGABRT, Signal::SIGSEGV, Signal::SIGBUS].iter().any(|signal| *signal as i32 == number));
        exited.was_out_of_memory || aborted && exited.peak_growth_bytes >= self.limits.memory_bytes / 4 * 3
    }
}

/// The worker had to be killed, for its channel was closed.
fn went_on(why: Option<Interruption>) -> Ending {
    match why {
        Some(why @ Interruption::Cancelled(_)) => why.ending(None),
        _ => Ending::Broken("it closed its channel and went on".into()),
    }
}
