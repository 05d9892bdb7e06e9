//! One generation of a pool: a zygote and the counters of its forks, which determine when it must be
//! replaced.

use tokio::time::Instant;

use super::super::launch_config::ForkPurpose;
use super::PoolLimits;

/// The current zygote of a pool, with the number and the results of its forks.
pub(super) struct Generation {
    /// The number of the generation: 1 for the first zygote of the pool.
    pub(super) number: u32,
    /// When the zygote became ready. Set again by [`Self::renew`].
    pub(super) started: Instant,
    /// Whether a worker of the zygote crashed. The zygote is then replaced, so that knowledge of its address-space layout
    /// becomes useless.
    pub(super) crashed: bool,
    /// Number of forks that were requested from the zygote since its start or since the last [`Self::renew`].
    forks: u32,
    /// Number of requested forks for executions that have neither become workers nor failed.
    pub(super) pending_for_runs: usize,
    /// Number of requested forks for sessions that have neither become workers nor failed.
    pub(super) pending_for_sessions: usize,
}

impl Generation {
    pub(super) fn new(number: u32, started: Instant) -> Self {
        Self { number, started, crashed: false, forks: 0, pending_for_runs: 0, pending_for_sessions: 0 }
    }

    /// Records that these numbers of forks were requested from the zygote.
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

    /// Returns the number of requested forks that have neither become workers nor failed.
    pub(super) fn pending_forks(&self) -> usize {
        self.pending_for_runs + self.pending_for_sessions
    }

    /// Resets the zygote's age, number of forks and crash flag after the start of its replacement failed. The
    /// pool tries to replace it again when it next reaches a limit of age or forks, or when a worker crashes
    /// again.
    pub(super) fn renew(&mut self, now: Instant) {
        (self.started, self.crashed, self.forks) = (now, false, 0);
    }

    /// Whether a requested fork of the zygote has ended in anything but one of its `idle` idle workers: a worker that
    /// was used, handed over or killed, or a failure. Pending forks do not count.
    pub(super) fn has_served(&self, idle: usize) -> bool {
        self.forks as usize > self.pending_forks() + idle
    }

    /// Whether the zygote should be replaced, for new randomness and a new address-space layout: after a crash, or
    /// after the maximum age or number of forks if a worker was used. `idle` is the number of its idle workers.
    pub(super) fn needs_replacement(&self, idle: usize, now: Instant, bounds: &PoolLimits) -> bool {
        let is_old = now.duration_since(self.started) >= bounds.recycle_age;
        self.crashed || self.has_served(idle) && (self.forks >= bounds.recycle_after || is_old)
    }
}
