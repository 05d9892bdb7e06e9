//! The worker of a session. Between two runs it is stopped with SIGSTOP: it uses no CPU time, and its channel is not
//! read.

use std::time::Duration;

use lockhouse_pool::{Lease, Worker};
use lockhouse_protocol::{Conversation, ConversationLimits, Failure, FailureCode, ToWorker, frame};
use nix::sys::signal::Signal;

use super::cpu_budget::CpuBudget;

/// The reply to requests that were still in flight when the run of a session ended.
const RUN_ENDED_MESSAGE: &str =
    "the run of the session ended before the answer came: whether it took effect is not known";

/// A sealed and verified worker that belongs to one session. Dropping it kills the process.
#[derive(Debug)]
pub struct SessionWorker {
    worker: Worker,
    /// Encoded replies that the worker has not read yet.
    out: Vec<u8>,
}

impl SessionWorker {
    /// Creates the session worker before its first run.
    pub fn new(worker: Worker) -> Self {
        Self { worker, out: Vec::new() }
    }

    /// Whether the worker process is still running or stopped.
    pub fn is_alive(&self) -> bool {
        self.worker.process.is_alive()
    }

    /// Stops the worker with SIGSTOP after a run. Threads that still wait for a reply get a failure when the next run
    /// resumes them.
    pub(super) fn pause(
        mut self,
        mut conversation: Conversation,
        mut out: Vec<u8>,
        frame_bytes: u32,
    ) -> Self {
        self.worker.process.signal(Signal::SIGSTOP);
        let failure = Failure {
            code: FailureCode::Timeout,
            message: RUN_ENDED_MESSAGE.to_owned(),
            server: None,
            tool: None,
            retryable: false,
        };
        for call in conversation.abandon_in_flight() {
            let reply = ToWorker::Reply { call, reply: Err(failure.clone()) };
            out.extend(frame::encode(&reply, frame_bytes).unwrap_or_default());
        }
        self.worker.conversation = conversation;
        Self { out, ..self }
    }
}

/// The worker in which a run is executed.
#[derive(Debug)]
pub enum RunWorker {
    /// A worker for one run only, killed when the run ends.
    Leased(Lease),
    /// The worker of a session, kept for its next run.
    Session(SessionWorker),
}

/// What a run needs from its worker when it starts.
pub(super) struct RunStart {
    /// The conversation with the worker. Until the run ends, a placeholder that permits nothing takes its place in the
    /// worker.
    pub(super) conversation: Conversation,
    /// Encoded messages that are still to be written to the worker.
    pub(super) out: Vec<u8>,
    /// The CPU limit, if the kernel does not enforce it for this run.
    pub(super) cpu: Option<CpuBudget>,
}

impl RunWorker {
    pub(super) fn worker(&self) -> &Worker {
        match self {
            Self::Leased(lease) => &lease.worker,
            Self::Session(session_worker) => &session_worker.worker,
        }
    }

    pub(super) fn worker_mut(&mut self) -> &mut Worker {
        match self {
            Self::Leased(lease) => &mut lease.worker,
            Self::Session(session_worker) => &mut session_worker.worker,
        }
    }

    /// Prepares the worker for a run, and takes its conversation and unsent messages.
    pub(super) fn start_run(&mut self, cpu: Duration, limits: ConversationLimits) -> RunStart {
        let (out, cpu) = match self {
            Self::Leased(_) => (Vec::new(), None),
            Self::Session(session_worker) => {
                let before = session_worker.worker.process.cpu_time().unwrap_or_default();
                (std::mem::take(&mut session_worker.out), Some(CpuBudget::new(before, cpu)))
            }
        };
        let conversation = std::mem::replace(&mut self.worker_mut().conversation, Conversation::new(limits));
        RunStart { conversation, out, cpu }
    }
}
