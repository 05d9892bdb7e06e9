//! How many workers there are, for those who watch.

use std::sync::Arc;

use parking_lot::Mutex;

use serde::Serialize;
use tokio::time::Instant;

/// As of a pool's last event.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Figures {
    /// Runs that there may be at one time.
    pub places: usize,
    pub idle: usize,
    pub forking: usize,
    pub running: usize,
    /// Runs that wait for a worker.
    pub waiting: usize,
    /// Zygotes that were started so far.
    pub zygotes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zygote_age_s: Option<f64>,
}

/// The pool's task sets them, with when its zygote was started, and everybody may look.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedFigures(Arc<Mutex<(Figures, Option<Instant>)>>);

impl SharedFigures {
    pub(super) fn set(&self, figures: Figures, zygote: Option<Instant>) {
        *self.0.lock() = (figures, zygote);
    }

    pub(super) fn get(&self) -> Figures {
        let (figures, zygote) = *self.0.lock();
        Figures { zygote_age_s: zygote.map(|started| started.elapsed().as_secs_f64()), ..figures }
    }
}
