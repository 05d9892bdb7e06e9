//! How many idle workers a pool keeps ready: more while requests find none, fewer after a while without such requests.

use std::time::Duration;

use tokio::time::Instant;

/// If for this time every request has found an idle worker, the pool keeps one idle worker less.
pub(super) const SHRINK_AFTER: Duration = Duration::from_secs(60);

/// The number of idle workers that a pool keeps ready. An idle worker costs memory, and a request that finds none waits
/// for a fork.
#[derive(Debug)]
pub(super) struct IdleTarget {
    count: usize,
    min: usize,
    max: usize,
    /// The time from which [`SHRINK_AFTER`] is counted: when a request last found no idle worker, or when shrinking
    /// was last due.
    settled: Instant,
}

impl IdleTarget {
    /// Creates a target between `min` and `max` that begins at `min`.
    pub(super) fn new(min: usize, max: usize, now: Instant) -> Self {
        let min = min.min(max);
        Self { count: min, min, max, settled: now }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Raises the target by one, up to the maximum, because a request found no idle worker.
    pub(super) fn raise(&mut self, now: Instant) {
        self.count = (self.count + 1).min(self.max);
        self.settled = now;
    }

    /// If [`SHRINK_AFTER`] has passed, lowers the target by one, down to the minimum, and returns `true`. The caller
    /// must then end the idle workers beyond the target.
    pub(super) fn shrink_if_due(&mut self, now: Instant) -> bool {
        let is_due = now.duration_since(self.settled) >= SHRINK_AFTER;
        if is_due {
            self.count = (self.count - 1).max(self.min);
            self.settled = now;
        }
        is_due
    }

    /// Returns when the caller must next call [`Self::shrink_if_due`]. `has_surplus` says whether there are more idle
    /// workers than the target. `None` if there is nothing to shrink.
    pub(super) fn shrinks_at(&self, has_surplus: bool) -> Option<Instant> {
        (has_surplus || self.count > self.min).then(|| self.settled + SHRINK_AFTER)
    }
}
