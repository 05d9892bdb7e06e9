//! The due times of timers of `setTimeout` and `setInterval`. Their callbacks are stored in JavaScript.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Maximum delay of a timer in milliseconds, as in browsers. A longer or invalid delay counts as 0.
const DELAY_MS_MAX: f64 = 2_147_483_647.0;

/// The pending timers.
#[derive(Default)]
pub(super) struct Timers {
    /// Due time and number of each timer, sorted.
    due: BTreeSet<(Instant, u32)>,
    last: u32,
}

impl Timers {
    /// Starts a timer and returns its number. Numbers end at 2³² - 1, which all later timers share.
    pub(super) fn start(&mut self, delay_ms: f64) -> u32 {
        let delay_ms = if (0.0..=DELAY_MS_MAX).contains(&delay_ms) { delay_ms } else { 0.0 };
        self.last = self.last.saturating_add(1);
        self.due.insert((Instant::now() + Duration::from_secs_f64(delay_ms / 1000.0), self.last));
        self.last
    }

    /// Cancels a timer.
    pub(super) fn stop(&mut self, id: u32) {
        self.due.retain(|&(_, other)| other != id);
    }

    /// If the earliest timer is due, removes it and returns its number.
    pub(super) fn take_due(&mut self) -> Option<u32> {
        let first = *self.due.first()?;
        (first.0 <= Instant::now()).then(|| {
            self.due.remove(&first);
            first.1
        })
    }

    /// Returns the time until the next timer is due: zero if it is due already, `None` if there is no timer.
    pub(super) fn next(&self) -> Option<Duration> {
        Some(self.due.first()?.0.saturating_duration_since(Instant::now()))
    }
}
