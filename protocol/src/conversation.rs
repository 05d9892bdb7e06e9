//! The supervisor's side of the conversation with one worker, without I/O: message → action or violation.
//!
//! ```text
//! Sealing ──Ready──► Idle ──run()──► Running ──Done──► Over
//!                                    ▲     │
//!                              run() │     │ Done, in a session
//!                                    Resting
//! ```
//! A worker may only say what its phase permits. Whatever else it says is a [`Violation`], and its end.
//!
//! Threads of a session's code can outlive the run that started them. What they print and ask for while the session rests
//! belongs to its next run, and is counted there.

use std::collections::HashSet;

use crate::id::CallId;
use crate::profile::ConversationLimits;
use crate::worker::{FromWorker, Outcome, Request, Stream};

/// Questions about servers and tools that one execution may ask, besides its calls.
pub const LOOKUPS_MAX: u32 = 1_000;

/// What the supervisor does about a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The worker says that it is sealed: verify it.
    Verify,
    /// The worker could not seal itself, for this reason.
    GiveUp(String),
    /// Keep a piece of output.
    Append(Stream, String),
    /// Answer a request, later, through [`Conversation::reply`].
    Answer(CallId, Request),
    /// The execution is over.
    Finish(Outcome),
    /// The execution has used up what it may use: stop it.
    Stop(ExceededLimit),
}

/// A limit of the conversation that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// [`ConversationLimits::calls`].
    Calls,
    /// [`LOOKUPS_MAX`].
    Lookups,
    /// [`ConversationLimits::output_bytes`].
    Output,
}

/// What only a broken or hostile worker does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The message does not belong to the phase.
    #[error("it sent {message} while {phase}")]
    OutOfPhase {
        /// The kind of message.
        message: &'static str,
        /// Where the conversation stood.
        phase: &'static str,
    },
    /// The ids of requests must grow.
    #[error("it used call id {} again, or counted down", .0.0)]
    ReusedCallId(CallId),
    /// Output of nothing would go on for ever without ever reaching the limit of output.
    #[error("it sent output of nothing")]
    EmptyOutput,
    /// More requests await their reply than were agreed.
    #[error("it has more than {0} requests under way")]
    TooManyUnderWay(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Sealing,
    Idle,
    Running,
    Resting,
    Over,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Sealing => "sealing itself",
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Resting => "between two runs",
            Self::Over => "already done",
        }
    }
}

/// One conversation, from birth to the final answer, or to that of its session's last run.
#[derive(Debug)]
pub struct Conversation {
    limits: ConversationLimits,
    phase: Phase,
    /// Whether what runs is a run of a session.
    in_session: bool,
    last_call: CallId,
    under_way: HashSet<CallId>,
    calls: u32,
    lookups: u32,
    output_bytes: u64,
}

impl Conversation {
    /// A conversation with a worker that was just forked.
    #[must_use]
    pub fn new(limits: ConversationLimits) -> Self {
        Self {
            limits,
            phase: Phase::Sealing,
            in_session: false,
            last_call: CallId(0),
            under_way: HashSet::new(),
            calls: 0,
            lookups: 0,
            output_bytes: 0,
        }
    }

    /// Notes that code is sent, which may be the next run of a session.
    ///
    /// Returns whether it may be: only an idle worker may get code, and only once, but for a session's own next run.
    #[must_use]
    pub fn run(&mut self, in_session: bool) -> bool {
        let may = self.phase == Phase::Idle || self.phase == Phase::Resting && in_session;
        if may {
            self.phase = Phase::Running;
            self.in_session = in_session;
        }
        may
    }

    /// Gives up what is under way while a session rests: each of these requests gets its reply now or never.
    pub fn abandon(&mut self) -> Vec<CallId> {
        let mut calls: Vec<CallId> = match self.phase {
            Phase::Resting => self.under_way.drain().collect(),
            _ => Vec::new(),
        };
        calls.sort_unstable();
        calls
    }

    /// Notes that a request is answered. Returns false when it is not awaiting an answer, and then nothing is sent.
    #[must_use]
    pub fn reply(&mut self, call: CallId) -> bool {
        self.under_way.remove(&call)
    }

    /// What a message means.
    ///
    /// # Errors
    /// A [`Violation`], after which the worker must not be heard again.
    pub fn receive(&mut self, message: FromWorker) -> Result<Action, Violation> {
        match (self.phase, message) {
            (Phase::Sealing, FromWorker::Ready) => {
                self.phase = Phase::Idle;
                Ok(Action::Verify)
            }
            (Phase::Sealing, FromWorker::Refused { reason }) => {
                self.phase = Phase::Over;
                Ok(Action::GiveUp(reason))
            }
            (Phase::Running | Phase::Resting, FromWorker::Output { stream, text }) => {
                self.output(stream, text)
            }
            (Phase::Running | Phase::Resting, FromWorker::Request { call, request }) => {
                self.request(call, request)
            }
            (Phase::Running, FromWorker::Done(outcome)) => {
                self.phase = if self.in_session { Phase::Resting } else { Phase::Over };
                (self.calls, self.lookups, self.output_bytes) = (0, 0, 0);
                Ok(Action::Finish(outcome))
            }
            (phase, message) => Err(Violation::OutOfPhase { message: kind(&message), phase: phase.as_str() }),
        }
    }

    fn output(&mut self, stream: Stream, text: String) -> Result<Action, Violation> {
        if text.is_empty() {
            return Err(Violation::EmptyOutput);
        }
        self.output_bytes = self.output_bytes.saturating_add(text.len() as u64);
        if self.output_bytes > self.limits.output_bytes {
            return Ok(self.stop(ExceededLimit::Output));
        }
        Ok(Action::Append(stream, text))
    }

    fn request(&mut self, call: CallId, request: Request) -> Result<Action, Violation> {
        if call <= self.last_call {
            return Err(Violation::ReusedCallId(call));
        }
        if self.under_way.len() >= self.limits.parallel_calls as usize {
            return Err(Violation::TooManyUnderWay(self.limits.parallel_calls));
        }
        let (count, max, limit) = if request.goes_upstream() {
            (&mut self.calls, self.limits.calls, ExceededLimit::Calls)
        } else {
            (&mut self.lookups, LOOKUPS_MAX, ExceededLimit::Lookups)
        };
        *count += 1;
        if *count > max {
            return Ok(self.stop(limit));
        }
        self.last_call = call;
        self.under_way.insert(call);
        Ok(Action::Answer(call, request))
    }

    fn stop(&mut self, limit: ExceededLimit) -> Action {
        self.phase = Phase::Over;
        Action::Stop(limit)
    }
}

fn kind(message: &FromWorker) -> &'static str {
    match message {
        FromWorker::Ready => "Ready",
        FromWorker::Refused { .. } => "Refused",
        FromWorker::Output { .. } => "Output",
        FromWorker::Request { .. } => "Request",
        FromWorker::Done(_) => "Done",
    }
}
