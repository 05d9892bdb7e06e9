//! The supervisor's side of the protocol with one worker process, as a state machine without I/O: each message from the
//! worker becomes an action of the supervisor or a violation of the protocol.
//!
//! ```text
//! Sealing ──Ready──► Idle ──start_run()──► Running ──Done──► Finished
//!                                          ▲     │
//!                              start_run() │     │ Done, in a session
//!                                        BetweenRuns
//! ```
//! "Sealing" means that the worker enters its sandbox. A worker may send only the messages that its phase permits. Any
//! other message is a [`Violation`], after which the worker is killed.
//!
//! Threads that submitted code starts in a session can outlive their run. What they print and request between two runs
//! counts towards the limits of the next run.

use std::collections::HashSet;

use crate::id::CallId;
use crate::sandbox_profile::ConversationLimits;
use crate::worker_messages::{FromWorker, Outcome, Stream, WorkerRequest};

/// Maximum number of lookups in one execution. A lookup is a request that the supervisor answers itself: about servers,
/// tools, stored results or saved skills. Calls of upstream servers are limited by [`ConversationLimits::calls`]
/// instead.
/// Bound: workers and programs.
pub const LOOKUPS_MAX: u32 = 1_000;

/// What the supervisor must do when it has received a message from a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Verify the worker's sandbox from outside: the worker reports that it has entered the sandbox.
    Verify,
    /// Discard the worker: it could not enter its sandbox. The text is the reason.
    SealFailed(String),
    /// Append the text, which the program printed to the given stream, to the captured output.
    Append(Stream, String),
    /// Process a request of the program. [`Conversation::reply`] must be called before the reply is sent to the worker.
    Answer(CallId, WorkerRequest),
    /// Finish the run with this outcome.
    Finish(Outcome),
    /// Stop the run, because it exceeded this limit.
    Stop(ExceededLimit),
}

/// A limit that an execution exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceededLimit {
    /// The maximum number of calls of upstream servers, [`ConversationLimits::calls`].
    Calls,
    /// The maximum number of requests that the supervisor answers itself, [`LOOKUPS_MAX`].
    Lookups,
    /// The maximum size of the program's output, [`ConversationLimits::output_bytes`].
    Output,
}

/// A violation of the protocol. Only a worker that is defective or hostile commits one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The worker sent a message that the current phase of the conversation does not permit.
    #[error("it sent {message} while {phase}")]
    OutOfPhase {
        /// The name of the message's variant in [`FromWorker`], for error texts.
        message: &'static str,
        /// The current phase of the conversation, for error texts.
        phase: &'static str,
    },
    /// The worker sent a request with this id, which is not larger than the ids of all earlier requests.
    #[error("it used call id {}, which is not larger than its last one", .0.0)]
    ReusedCallId(CallId),
    /// The worker sent an empty piece of output. No number of empty pieces would exceed the limit on output.
    #[error("it sent an empty piece of output")]
    EmptyOutput,
    /// The worker sent a request although the maximum number of requests had no reply yet. The value is this maximum,
    /// [`ConversationLimits::parallel_calls`].
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

/// The state of the protocol between the supervisor and one worker, from the fork of the worker to the outcome of its
/// only run or, in a session, of its last run.
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
    /// Starts the conversation with a worker process that was just forked. The worker has not reported yet that it has
    /// entered its sandbox.
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

    /// Records that a program is sent to the worker; `in_session` says whether the worker belongs to a session. Returns
    /// false, and records nothing, if the worker may not get a program now. A worker may get a program if it is idle,
    /// or if it belongs to a session and is between two runs.
    #[must_use]
    pub fn start_run(&mut self, in_session: bool) -> bool {
        let may = self.phase == Phase::Idle || self.phase == Phase::BetweenRuns && in_session;
        if may {
            self.phase = Phase::Running;
            self.in_session = in_session;
        }
        may
    }

    /// Between two runs of a session, forgets all requests of the worker that have no reply yet, and returns their ids
    /// in ascending order. In any other phase, forgets nothing and returns no ids. The caller may reply to these
    /// requests at once, and must not reply later.
    pub fn abandon_in_flight(&mut self) -> Vec<CallId> {
        let mut calls: Vec<CallId> = match self.phase {
            Phase::BetweenRuns => self.in_flight.drain().collect(),
            _ => Vec::new(),
        };
        calls.sort_unstable();
        calls
    }

    /// Records that a request gets its reply. Returns false if the worker does not wait for a reply to `call`; the
    /// caller must then send no reply.
    #[must_use]
    pub fn reply(&mut self, call: CallId) -> bool {
        self.in_flight.remove(&call)
    }

    /// Checks a message from the worker, and returns what the supervisor must do.
    ///
    /// # Errors
    /// A [`Violation`] if the protocol does not permit the message. The caller must kill the worker and ignore its
    /// further messages.
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

    fn request(&mut self, call: CallId, request: WorkerRequest) -> Result<Action, Violation> {
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
