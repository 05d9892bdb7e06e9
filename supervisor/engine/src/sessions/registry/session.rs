//! One session, with its worker and its queue of waiting runs.

use std::collections::VecDeque;

use lockhouse_protocol::Language;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::sessions::SessionError;

/// The right of one run to use the worker of a session. After the run, `Registry::give_back` must be called.
#[derive(Debug)]
pub(in crate::sessions) struct WorkerGrant<W> {
    /// The number of the session, unique within this process.
    pub(in crate::sessions) number: u64,
    /// Number of runs in the session so far, including this run.
    pub(in crate::sessions) runs: u32,
    /// The worker of the session. `None` for the first run, which must create the worker.
    pub(in crate::sessions) worker: Option<W>,
    /// The token that is cancelled when the session must end while the run is active.
    pub(in crate::sessions) stop: CancellationToken,
}

/// The grant of a session's worker to a run, or the reason why the run cannot use the session.
pub(in crate::sessions) type GrantResult<W> = Result<WorkerGrant<W>, SessionError>;

#[derive(Debug)]
pub(super) struct Session<W> {
    /// The number of the session. It distinguishes the session from earlier sessions with the same name.
    pub(super) number: u64,
    /// The description of the session's owner, for operators.
    pub(super) owner: String,
    pub(super) language: Language,
    pub(super) created: Instant,
    pub(super) used: Instant,
    pub(super) runs: u32,
    /// The idle worker of the session. `None` while a run uses the worker.
    pub(super) worker: Option<W>,
    pub(super) waiting: VecDeque<oneshot::Sender<GrantResult<W>>>,
    /// The token that stops the active run when the session must end.
    pub(super) stop: CancellationToken,
    /// The reason why the session must end after its active run. `None` if the session may continue.
    pub(super) end_requested: Option<String>,
}

impl<W> Session<W> {
    /// Creates a session without a worker. The first run creates the worker.
    pub(super) fn new(number: u64, owner: &str, language: Language, now: Instant) -> Self {
        Self {
            number,
            owner: owner.to_owned(),
            language,
            created: now,
            used: now,
            runs: 0,
            worker: None,
            waiting: VecDeque::new(),
            stop: CancellationToken::new(),
            end_requested: None,
        }
    }

    pub(super) fn state(&self) -> &'static str {
        if self.worker.is_some() { "idle" } else { "running" }
    }

    /// Grants the worker to the next run of the session. `worker` is `None` for the first run.
    pub(super) fn grant(&mut self, worker: Option<W>, now: Instant) -> WorkerGrant<W> {
        self.runs += 1;
        self.used = now;
        WorkerGrant { number: self.number, runs: self.runs, worker, stop: self.stop.clone() }
    }

    /// Grants the worker to the run that has waited longest. If no run waits, keeps the worker idle in the session.
    pub(super) fn hand_over(&mut self, worker: W, now: Instant) {
        self.used = now;
        let mut worker = Some(worker);
        while worker.is_some()
            && let Some(waiting) = self.waiting.pop_front()
        {
            if waiting.is_closed() {
                continue;
            }
            let runs = self.runs;
            let grant = self.grant(worker.take(), now);
            if let Err(Ok(returned)) = waiting.send(Ok(grant)) {
                (worker, self.runs) = (returned.worker, runs);
            }
        }
        self.worker = worker;
    }
}
