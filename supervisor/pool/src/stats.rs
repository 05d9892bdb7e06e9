//! Counters of a pool, for health reports and metrics.

use std::sync::Arc;

use parking_lot::Mutex;

use serde::Serialize;
use tokio::time::Instant;

/// The counters of a pool, as they were after its last event.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PoolStats {
    /// Maximum number of executions that run in the pool at one time.
    pub places: usize,
    /// Number of sandboxed workers that are ready for an execution.
    pub idle: usize,
    /// Number of requested forks that have not yet become a worker or failed.
    pub forking: usize,
    /// Number of workers that are leased to executions. Workers of sessions do not count.
    pub running: usize,
    /// Number of executions and sessions that wait for a worker.
    pub waiting: usize,
    /// Number of zygote starts of this pool so far, including failed ones.
    pub zygotes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// Age of the current zygote in seconds; `None` if no zygote runs.
    pub zygote_age_s: Option<f64>,
}

/// The counters of a pool, and the time from which the age of its current zygote is counted. The pool's task writes
/// them, other tasks read them.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedStats(Arc<Mutex<(PoolStats, Option<Instant>)>>);

impl SharedStats {
    pub(super) fn set(&self, figures: PoolStats, zygote: Option<Instant>) {
        *self.0.lock() = (figures, zygote);
    }

    pub(super) fn get(&self) -> PoolStats {
        let (figures, zygote) = *self.0.lock();
        PoolStats { zygote_age_s: zygote.map(|started| started.elapsed().as_secs_f64()), ..figures }
    }
}
