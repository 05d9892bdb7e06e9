//! The supervisor's side of the protocol with one worker, as a state machine without I/O: each message becomes an action or a
//! violation.
//!
//! ```text
//! Sealing ──Ready──► Idle ──start_run()──► Running ──Done──► Finished
//!                                          ▲     │
//!                              start_run() │     │ Done, in a session
//!                                        BetweenRuns
//! ```
//! A worker may send only the messages that its phase permits. Any other message is a [`Violation`], which ends the worker.
//!
//! Threads of a session's code can outlive the run that started them. Their output and requests between two runs are counted
//! as those of the next run.

use std::collections::HashSet;

use crate::id::CallId;
use crate::sandbox_profile::ConversationLimits;
use crate::worker_messages::{FromWorker, Outcome, Request, Stream};

/// The number of lookups in one execution: requests about servers, tools, results and skills, which are not tool calls.
pub const LOOKUPS_MAX: u32 = 1_000;

/// The supervisor's action upon a message of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Verify the seal: the worker reports that it is sealed.
    Verify,
    /// Discard the worker: it could not seal itself, for this reason.
    SealFailed(String),
    /// Append a piece of the program's output to the captured output.
    Append(Stream, String),
    /// Answer a request, later, through [`Conversation::reply`].
    Answer(CallId, Request),
    /// Finish the execution with this outcome.
    Finish(Outcome),
    /// Stop the execution: it reached this limit.
    Stop(ExceededLimit),
}

/// The limit of a conversation that an execution reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// The maximum number of tool calls, [`ConversationLimits::calls`].
    Calls,
    /// The maximum number of requests that the supervisor answers itself, [`LOOKUPS_MAX`].
    Lookups,
    /// The maximum size of printed output, [`ConversationLimits::output_bytes`].
    Output,
}

/// A breach of the protocol, which only a broken or hostile worker commits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The worker sent a message that the current phase does not permit.
    #[error("it sent {message} while {phase}")]
    OutOfPhase {
        /// The kind of the message, for error texts.
        message: &'static str,
        /// The phase of the conversation.
        phase: &'static str,
    },
    /// The id of a request is not larger than all ids before it.
    #[error("it used call id {}, which is not larger than its last one", .0.0)]
    ReusedCallId(CallId),
    /// A piece of output is empty. Empty pieces would never reach the limit of output.
    #[error("it sent an empty piece of output")]
    EmptyOutput,
    /// More requests await their reply than [`ConversationLimits::parallel_calls`].
    #[error("it has more than {0} requests in flight")]
    TooManyInFlight(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Sealing,
    Idle,
    Running,
    BetweenRuns,
    Finished,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Sealing => "sealing itself",
            Self::Idle => "idle",
            Self::Running => "running",
            Self::BetweenRuns => "between two runs",
            Self::Finished => "already finished",
        }
    }
}

/// The state of the protocol with one worker, from the fork to its outcome; for a session, to the outcome of its last
/// run.
#[derive(Debug)]
pub struct Conversation {
    limits: ConversationLimits,
    phase: Phase,
    /// Whether the current run belongs to a session.
    in_session: bool,
    last_call: CallId,
    in_flight: HashSet<CallId>,
    calls: u32,
    lookups: u32,
    output_bytes: u64,
}

impl Conversation {
    /// Starts the conversation with a worker that was just forked.
    #[must_use]
    pub fn new(limits: ConversationLimits) -> Self {
        Self {
            limits,
            phase: Phase::Sealing,
            in_session: false,
            last_call: CallId(0),
            in_flight: HashSet::new(),
            calls: 0,
            lookups: 0,
            output_bytes: 0,
        }
    }

    /// Records that code is sent to the worker. Returns false, and records nothing, if the worker may not get code
    /// now: only an idle worker may, once, or a session's worker between two runs.
    #[must_use]
    pub fn start_run(&mut self, in_session: bool) -> bool {
        let may = self.phase == Phase::Idle || self.phase == Phase::BetweenRuns && in_session;
        if may {
            self.phase = Phase::Running;
            self.in_session = in_session;
        }
        may
    }

    /// Between two runs of a session, stops waiting for the requests in flight and returns their ids in order. The
    /// caller replies to them now or never.
    pub fn abandon_in_flight(&mut self) -> Vec<CallId> {
        let mut calls: Vec<CallId> = match self.phase {
            Phase::BetweenRuns => self.in_flight.drain().collect(),
            _ => Vec::new(),
        };
        calls.sort_unstable();
        calls
    }

    /// Records the reply to a request. Returns false if the request does not await one; then nothing may be sent.
    #[must_use]
    pub fn reply(&mut self, call: CallId) -> bool {
        self.in_flight.remove(&call)
    }

    /// Returns the action upon a message.
    ///
    /// # Errors
    /// A [`Violation`]. The worker must be ended, and its further messages ignored.
    pub fn receive(&mut self, message: FromWorker) -> Result<Action, Violation> {
        match (self.phase, message) {
            (Phase::Sealing, FromWorker::Ready) => {
                self.phase = Phase::Idle;
                Ok(Action::Verify)
            }
            (Phase::Sealing, FromWorker::Refused { reason }) => {
                self.phase = Phase::Finished;
                Ok(Action::SealFailed(reason))
            }
            (Phase::Running | Phase::BetweenRuns, FromWorker::Output { stream, text }) => {
                self.output(stream, text)
            }
            (Phase::Running | Phase::BetweenRuns, FromWorker::Request { call, request }) => {
                self.request(call, request)
            }
            (Phase::Running, FromWorker::Done(outcome)) => {
                self.phase = if self.in_session { Phase::BetweenRuns } else { Phase::Finished };
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
        if self.in_flight.len() >= self.limits.parallel_calls as usize {
            return Err(Violation::TooManyInFlight(self.limits.parallel_calls));
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
        self.in_flight.insert(call);
        Ok(Action::Answer(call, request))
    }

    fn stop(&mut self, limit: ExceededLimit) -> Action {
        self.phase = Phase::Finished;
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
