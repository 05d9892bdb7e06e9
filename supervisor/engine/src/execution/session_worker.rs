//! The worker of a session. Between two runs the worker is stopped with SIGSTOP: it uses no CPU time, and the
//! supervisor does not read its messages.

use std::time::Duration;

use lockhouse_pool::{Lease, Worker};
use lockhouse_protocol::{Conversation, ConversationLimits, Failure, FailureCode, ToWorker};
use nix::sys::signal::Signal;

use super::cpu_budget::CpuBudget;
use super::outbox::Outbox;

/// The error message that replies to requests of a session's code which were still in flight when the run ended.
const RUN_ENDED_MESSAGE: &str =
    "the run of the session ended before the answer came: whether it took effect is not known";

/// A worker that belongs to one session. The worker is in its sandbox, which was verified. Dropping this value kills
/// the process.
#[derive(Debug)]
pub struct SessionWorker {
    worker: Worker,
    /// Encoded replies that are not yet written to the worker.
    out: Outbox,
}

impl SessionWorker {
    /// Creates the session worker from a fresh worker, before the first run of the session.
    pub fn new(worker: Worker) -> Self {
        Self { worker, out: Outbox::default() }
    }

    /// Whether the worker process still exists, either running or stopped.
    pub fn is_alive(&self) -> bool {
        self.worker.process.is_alive()
    }

    /// Stops the worker with SIGSTOP after a run. Threads of the code that still wait for a reply get an error when the
    /// next run of the session resumes them. `out` holds the messages that are not yet written to the worker, and
    /// `frame_bytes` is the maximum size of an encoded message.
    pub(super) fn pause(mut self, mut conversation: Conversation, mut out: Outbox, frame_bytes: u32) -> Self {
        self.worker.process.signal(Signal::SIGSTOP);
        let failure = Failure::new(FailureCode::Timeout, RUN_ENDED_MESSAGE.to_owned());
        for call in conversation.abandon_in_flight() {
            let reply = ToWorker::Reply { call, reply: Err(failure.clone()) };
            // A failure is short, so that it always fits.
            let _ = out.push(reply, frame_bytes);
        }
        self.worker.conversation = conversation;
        Self { out, ..self }
    }
}

/// The worker in which a run is executed.
#[derive(Debug)]
pub enum RunWorker {
    /// A worker that is used for one run only, and killed when the run ends.
    Leased(Lease),
    /// The worker of a session, which is kept for the next run of the session.
    Session(SessionWorker),
}

/// What a run takes over from its worker when it starts.
pub(super) struct RunStart {
    /// The state machine that checks the messages between supervisor and worker. While a run has it, the worker has a
    /// placeholder that permits no message.
    pub(super) conversation: Conversation,
    /// Encoded messages of an earlier run of the session that are still to be written to the worker.
    pub(super) out: Outbox,
    /// The CPU limit that the supervisor enforces for this run. `None` if the kernel enforces the limit.
    pub(super) cpu: Option<CpuBudget>,
}

impl RunWorker {
    /// Returns the memory limit of the worker, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.worker().memory_bytes
    }

    pub(super) fn worker(&self) -> &Worker {
        match self {
            Self::Leased(lease) => &lease.worker,
            Self::Session(session_worker) => &session_worker.worker,
        }
    }

    /// Returns the process id of the worker.
    pub fn pid(&self) -> i32 {
        self.worker().process.pid()
    }

    pub(super) fn worker_mut(&mut self) -> &mut Worker {
        match self {
            Self::Leased(lease) => &mut lease.worker,
            Self::Session(session_worker) => &mut session_worker.worker,
        }
    }

    /// Prepares the worker for a run with the CPU limit `cpu`, and takes the state of its conversation and its unsent
    /// messages. `limits` are the limits of the placeholder that replaces the conversation.
    pub(super) fn start_run(&mut self, cpu: Duration, limits: ConversationLimits) -> RunStart {
        let (out, cpu) = match self {
            Self::Leased(_) => (Outbox::default(), None),
            Self::Session(session_worker) => {
                let before = session_worker.worker.process.cpu_time().unwrap_or_default();
                (std::mem::take(&mut session_worker.out), Some(CpuBudget::new(before, cpu)))
            }
        };
        let conversation = std::mem::replace(&mut self.worker_mut().conversation, Conversation::new(limits));
        RunStart { conversation, out, cpu }
    }
}
