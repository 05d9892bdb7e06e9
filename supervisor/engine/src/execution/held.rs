//! The worker of a session: between two runs it is stopped, so that it costs no CPU time, and nobody reads what it says.

use std::time::Duration;

use lockhouse_pool::{Lease, Worker};
use lockhouse_protocol::{Conversation, ConversationLimits, Failure, FailureCode, ToWorker, frame};
use nix::sys::signal::Signal;

use super::cpu::CpuBudget;

/// What a request gets that was under way when the run of a session ended.
const RUN_ENDED: &str =
    "the run of the session ended before the answer came: whether it took effect is not known";

/// A worker, sealed and verified, that belongs to one session. It is killed when this is dropped.
#[derive(Debug)]
pub struct Held {
    worker: Worker,
    /// Encoded replies that it has not read yet.
    out: Vec<u8>,
}

impl Held {
    /// A session's worker before its first run.
    pub fn new(worker: Worker) -> Self {
        Self { worker, out: Vec::new() }
    }

    /// Whether its process has not ended.
    pub fn is_alive(&self) -> bool {
        self.worker.process.is_alive()
    }

    /// Stops it after a run. Its threads that wait for an answer go on in the next run, and get none to what they asked in this.
    pub(super) fn rest(mut self, mut conversation: Conversation, mut out: Vec<u8>, frame_bytes: u32) -> Self {
        self.worker.process.signal(Signal::SIGSTOP);
        let failure = Failure {
            code: FailureCode::Timeout,
            message: RUN_ENDED.to_owned(),
            server: None,
            tool: None,
            retryable: false,
        };
        for call in conversation.abandon() {
            let reply = ToWorker::Reply { call, reply: Err(failure.clone()) };
            out.extend(frame::encode(&reply, frame_bytes).unwrap_or_default());
        }
        self.worker.conversation = conversation;
        Self { out, ..self }
    }
}

/// Where a run takes place.
#[derive(Debug)]
pub enum Place {
    /// In a worker that dies with it.
    Leased(Lease),
    /// In the worker of a session.
    Held(Held),
}

/// What a place has for a run that begins.
pub(super) struct Begun {
    /// The conversation with its worker. The one that stays in the worker meanwhile permits nothing.
    pub(super) conversation: Conversation,
    /// What is still to be written to the worker.
    pub(super) out: Vec<u8>,
    /// The CPU time of a run whose limit the kernel does not keep.
    pub(super) cpu: Option<CpuBudget>,
}

impl Place {
    pub(super) fn worker(&self) -> &Worker {
        match self {
            Self::Leased(lease) => &lease.worker,
            Self::Held(held) => &held.worker,
        }
    }

    pub(super) fn worker_mut(&mut self) -> &mut Worker {
        match self {
            Self::Leased(lease) => &mut lease.worker,
            Self::Held(held) => &mut held.worker,
        }
    }

    /// Takes from its worker what belongs to the run.
    pub(super) fn begin(&mut self, cpu: Duration, limits: ConversationLimits) -> Begun {
        let (out, cpu) = match self {
            Self::Leased(_) => (Vec::new(), None),
            Self::Held(held) => {
                let before = held.worker.process.cpu_time().unwrap_or_default();
                (std::mem::take(&mut held.out), Some(CpuBudget::new(before, cpu)))
            }
        };
        let conversation = std::mem::replace(&mut self.worker_mut().conversation, Conversation::new(limits));
        Begun { conversation, out, cpu }
    }
}
