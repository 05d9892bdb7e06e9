//! The worker of a session: between two runs it is stopped, so that it costs no CPU time, and nobody reads what it says.

use std::time::Duration;

use lockhouse_pool::{Lease, Worker};
use lockhouse_protocol::{Failure, FailureCode, ToWorker, frame};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::socket::{MsgFlags, recv};

use super::{Ending, READ_BYTES, Run};

/// What a request gets that was under way when the run of a session ended.
const RUN_ENDED: &str =
    "the run of the session ended before the answer came: whether it took effect is not known";
/// The sooner it is looked at how much CPU time a run has used, the less of it is left; never more often than this.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(20);
/// From the signal that its CPU time is used up to SIGKILL, in CPU time.
const CPU_GRACE: Duration = Duration::from_secs(1);

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
}

/// Where a run takes place.
#[derive(Debug)]
pub enum Place {
    /// In a worker that dies with it.
    Leased(Lease),
    /// In the worker of a session.
    Held(Held),
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

    /// What is still to be written to the worker, and the CPU time of a run whose limit the kernel does not keep.
    pub(super) fn begin(&mut self, cpu: Duration) -> (Vec<u8>, Option<CpuBudget>) {
        match self {
            Self::Leased(_) => (Vec::new(), None),
            Self::Held(held) => {
                let before = held.worker.process.cpu_time().unwrap_or_default();
                (std::mem::take(&mut held.out), Some(CpuBudget::new(before, cpu)))
            }
        }
    }
}

/// What a run of a session has used of its CPU time. In other runs the kernel keeps the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuBudget {
    /// What earlier runs had used, and this one's limit.
    before: Duration,
    limit: Duration,
    interrupted: bool,
}

impl CpuBudget {
    pub(super) fn new(before: Duration, limit: Duration) -> Self {
        Self { before, limit, interrupted: false }
    }

    /// What of a process's CPU time this run has used.
    pub(super) fn used(&self, in_all: Duration) -> Duration {
        in_all.saturating_sub(self.before)
    }

    /// How long it takes at least until something is to be done about it.
    fn wait(&self, in_all: Duration) -> Duration {
        let limit = if self.interrupted { self.limit + CPU_GRACE } else { self.limit };
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        (limit.saturating_sub(self.used(in_all)) / cores).max(LOOK_AT_LEAST_EVERY)
    }
}

impl Run<'_> {
    /// Wakes a session's worker. What its threads printed and asked meanwhile is the first that this run hears, and it has
    /// said nothing else. An ending, when it did.
    pub(super) fn wake(&mut self) -> Option<Ending> {
        if let Some(ending) = self.hear(&[]).or_else(|| self.hear_what_lies_there()) {
            return Some(ending);
        }
        self.worker().process.signal(Signal::SIGCONT);
        None
    }

    /// It is stopped, so that there is only so much.
    fn hear_what_lies_there(&mut self) -> Option<Ending> {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match recv(self.worker().descriptor(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(count @ 1..) => {
                    if let Some(ending) = self.hear(&buffer[..count]) {
                        return Some(ending);
                    }
                }
                Err(Errno::EINTR) => {}
                // Of one that has closed its end, or died, the run hears soon enough.
                _ => return None,
            }
        }
    }

    /// The worker of a session after a run, if it can have another one.
    pub(super) fn rest(mut self) -> Option<Held> {
        if !self.finished {
            return None;
        }
        self.worker().process.signal(Signal::SIGSTOP);
        let failure = Failure {
            code: FailureCode::Timeout,
            message: RUN_ENDED.to_owned(),
            server: None,
            tool: None,
            retryable: false,
        };
        // Its threads that wait for an answer go on in the next run.
        let limit = self.limits.conversation.frame_bytes;
        for call in self.worker_mut().conversation.abandon() {
            let reply = ToWorker::Reply { call, reply: Err(failure.clone()) };
            self.out.extend(frame::encode(&reply, limit).unwrap_or_default());
        }
        match self.place {
            Place::Held(held) => Some(Held { out: self.out, ..held }),
            Place::Leased(_) => None,
        }
    }

    /// Waits until a run of a session has used up its CPU time. True once it was interrupted and has gone on.
    pub(super) async fn cpu_runs_out(
        budget: &mut Option<CpuBudget>,
        process: &lockhouse_pool::WorkerProcess,
    ) -> bool {
        let Some(budget) = budget else { return std::future::pending().await };
        loop {
            // A process that is gone is heard of elsewhere.
            let Some(in_all) = process.cpu_time() else { return std::future::pending().await };
            match budget.used(in_all) {
                used if used >= budget.limit + CPU_GRACE => return true,
                used if used >= budget.limit && !budget.interrupted => {
                    budget.interrupted = true;
                    process.signal(Signal::SIGXCPU);
                }
                _ => {}
            }
            tokio::time::sleep(budget.wait(in_all)).await;
        }
    }
}
