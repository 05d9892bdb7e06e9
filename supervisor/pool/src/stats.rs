//! Counters of a pool, for health reports and metrics.

use std::sync::Arc;

use parking_lot::Mutex;

use serde::Serialize;
use tokio::time::Instant;

/// Counters of a pool as of its last event.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PoolStats {
    /// Maximum number of concurrently running executions.
    pub places: usize,
    pub idle: usize,
    pub forking: usize,
    pub running: usize,
    /// Number of executions that wait for a worker.
    pub waiting: usize,
    /// Number of zygotes that the pool has started so far.
    pub zygotes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zygote_age_s: Option<f64>,
}

/// Counters shared between the pool's task and readers, with the start time of the current zygote.
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
