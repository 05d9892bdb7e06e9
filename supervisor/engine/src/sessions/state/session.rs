//! One session, and the turns of its runs.

use std::collections::VecDeque;

use lockhouse_base::language::Language;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::sessions::NoTurn;

/// A run's right to a session's worker. Whoever gets one gives it back with `State::give_back`, whatever happens.
#[derive(Debug)]
pub(in crate::sessions) struct Grant<W> {
    /// Of the session.
    pub(in crate::sessions) number: u64,
    /// Of the session so far, with this one.
    pub(in crate::sessions) runs: u32,
    /// None for the run that begins the session.
    pub(in crate::sessions) worker: Option<W>,
    /// Cancelled when the session is to end while the run is under way.
    pub(in crate::sessions) stop: CancellationToken,
}

/// A grant, or why there will be none.
pub(in crate::sessions) type Granted<W> = Result<Grant<W>, NoTurn>;

#[derive(Debug)]
pub(super) struct Session<W> {
    /// Tells it from one of the same name before it.
    pub(super) number: u64,
    /// Its owner, in words.
    pub(super) owner: String,
    pub(super) language: Language,
    pub(super) created: Instant,
    pub(super) used: Instant,
    pub(super) runs: u32,
    /// None while a run has it.
    pub(super) worker: Option<W>,
    pub(super) waiting: VecDeque<oneshot::Sender<Granted<W>>>,
    /// Stops the run that is under way, because the session is to end.
    pub(super) stop: CancellationToken,
    /// Why it ends as soon as its run does.
    pub(super) to_end: Option<String>,
}

impl<W> Session<W> {
    /// One that no run has been in yet: its worker comes with the first.
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
            to_end: None,
        }
    }

    pub(super) fn state(&self) -> &'static str {
        if self.worker.is_some() { "idle" } else { "running" }
    }

    /// That of its next run.
    pub(super) fn grant(&mut self, worker: Option<W>, now: Instant) -> Grant<W> {
        self.runs += 1;
        self.used = now;
        Grant { number: self.number, runs: self.runs, worker, stop: self.stop.clone() }
    }

    /// Gives the worker to the run that has waited longest, or keeps it.
    pub(super) fn hand_on(&mut self, worker: W, now: Instant) {
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
