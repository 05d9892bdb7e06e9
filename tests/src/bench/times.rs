//! Figures of measured times.

use std::time::Duration;

/// Executions of `1+1` that are under way at a time, and how many there are in all, for the executions per second.
pub(crate) const AT_A_TIME: usize = 8;
pub(crate) const EXECUTIONS: usize = 1_000;

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Times in their order.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// `None` if there are none.
    pub(crate) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort();
        (!times.is_empty()).then_some(Self(times))
    }

    /// The time in ms that so many percent do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        millis(self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)])
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
