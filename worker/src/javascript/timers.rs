//! `setTimeout` and its kin: the engine keeps the times, the realm keeps the callbacks.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The longest delay, as in browsers; a longer one (or none that is a number) means at once.
const DELAY_MS_MAX: f64 = 2_147_483_647.0;

/// What is to happen later.
#[derive(Default)]
pub(super) struct Timers {
    /// By time, then in the order of their making.
    due: BTreeSet<(Instant, u32)>,
    last: u32,
}

impl Timers {
    /// Starts a timer. A program that starts more than 2³² gets none.
    pub(super) fn start(&mut self, delay_ms: f64) -> u32 {
        let delay_ms = if (0.0..=DELAY_MS_MAX).contains(&delay_ms) { delay_ms } else { 0.0 };
        self.last = self.last.saturating_add(1);
        self.due.insert((Instant::now() + Duration::from_secs_f64(delay_ms / 1000.0), self.last));
        self.last
    }

    /// Forgets a timer.
    pub(super) fn stop(&mut self, id: u32) {
        self.due.retain(|&(_, other)| other != id);
    }

    /// The next timer, if its time has come.
    pub(super) fn take_due(&mut self) -> Option<u32> {
        let first = *self.due.first()?;
        (first.0 <= Instant::now()).then(|| {
            self.due.remove(&first);
            first.1
        })
    }

    /// How long until the next timer.
    pub(super) fn next(&self) -> Option<Duration> {
        Some(self.due.first()?.0.saturating_duration_since(Instant::now()))
    }
}
