//! One generation: a zygote, what it has forked and what it owes.

use tokio::time::Instant;

use super::super::launch::Purpose;
use super::Bounds;

/// A zygote that forks.
pub(super) struct Generation {
    /// Tells it from those before it.
    pub(super) number: u32,
    pub(super) started: Instant,
    /// A worker of it crashed: what it learned of the address layout is worth nothing once there is a successor.
    pub(super) crashed: bool,
    /// Forks that it was asked for.
    forks: u32,
    /// Of these, those that have become no worker yet.
    pub(super) owed_to_runs: usize,
    pub(super) owed_to_sessions: usize,
}

impl Generation {
    pub(super) fn new(number: u32, started: Instant) -> Self {
        Self { number, started, crashed: false, forks: 0, owed_to_runs: 0, owed_to_sessions: 0 }
    }

    pub(super) fn asked(&mut self, for_runs: usize, for_sessions: usize) {
        self.owed_to_runs += for_runs;
        self.owed_to_sessions += for_sessions;
        self.forks = self.forks.saturating_add((for_runs + for_sessions) as u32);
    }

    /// A fork has become a worker, or failed.
    pub(super) fn answered(&mut self, purpose: Purpose) {
        let owed = match purpose {
            Purpose::Execution => &mut self.owed_to_runs,
            Purpose::Session => &mut self.owed_to_sessions,
        };
        *owed = owed.saturating_sub(1);
    }

    pub(super) fn owed(&self) -> usize {
        self.owed_to_runs + self.owed_to_sessions
    }

    /// There is no successor: it is as good as new, and is replaced when it is worn the next time.
    pub(super) fn serve_on(&mut self, now: Instant) {
        (self.started, self.crashed, self.forks) = (now, false, 0);
    }

    /// Whether its workers, of which some are `idle`, have run anything.
    pub(super) fn has_served(&self, idle: usize) -> bool {
        self.forks as usize > self.owed() + idle
    }

    /// Whether it is time for a zygote with other randomness and another address layout.
    pub(super) fn is_worn(&self, idle: usize, now: Instant, bounds: &Bounds) -> bool {
        let is_old = now.duration_since(self.started) >= bounds.recycle_age;
        self.crashed || self.has_served(idle) && (self.forks >= bounds.recycle_after || is_old)
    }
}
