//! The counters of one zygote and its forks: when it must be replaced.

use tokio::time::Instant;

use super::super::launch_config::ForkPurpose;
use super::PoolLimits;

/// A zygote that serves forks, with the number and the results of its forks.
pub(super) struct Generation {
    /// The number of the zygote, counted from 1 for each pool.
    pub(super) number: u32,
    pub(super) started: Instant,
    /// Whether a worker of the zygote crashed. The zygote is then replaced, so that knowledge of its address-space layout
    /// becomes useless.
    pub(super) crashed: bool,
    /// Number of forks that were requested from the zygote so far.
    forks: u32,
    /// Number of requested forks that have not become workers or failed yet.
    pub(super) pending_for_runs: usize,
    pub(super) pending_for_sessions: usize,
}

impl Generation {
    pub(super) fn new(number: u32, started: Instant) -> Self {
        Self { number, started, crashed: false, forks: 0, pending_for_runs: 0, pending_for_sessions: 0 }
    }

    pub(super) fn record_fork_requests(&mut self, for_runs: usize, for_sessions: usize) {
        self.pending_for_runs += for_runs;
        self.pending_for_sessions += for_sessions;
        self.forks = self.forks.saturating_add((for_runs + for_sessions) as u32);
    }

    /// Records that a fork became a worker or failed.
    pub(super) fn record_fork_result(&mut self, purpose: ForkPurpose) {
        let pending = match purpose {
            ForkPurpose::Execution => &mut self.pending_for_runs,
            ForkPurpose::Session => &mut self.pending_for_sessions,
        };
        *pending = pending.saturating_sub(1);
    }

    pub(super) fn pending_forks(&self) -> usize {
        self.pending_for_runs + self.pending_for_sessions
    }

    /// Restarts the counters of forks and age, because no zygote could be started in its place.
    pub(super) fn renew(&mut self, now: Instant) {
        (self.started, self.crashed, self.forks) = (now, false, 0);
    }

    /// Whether a worker of the zygote has run code; `idle` workers have not.
    pub(super) fn has_served(&self, idle: usize) -> bool {
        self.forks as usize > self.pending_forks() + idle
    }

    /// Whether the zygote should be replaced, for new randomness and a new address-space layout.
    pub(super) fn needs_replacement(&self, idle: usize, now: Instant, bounds: &PoolLimits) -> bool {
        let is_old = now.duration_since(self.started) >= bounds.recycle_age;
        self.crashed || self.has_served(idle) && (self.forks >= bounds.recycle_after || is_old)
    }
}
