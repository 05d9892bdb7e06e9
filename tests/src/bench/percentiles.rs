//! Percentiles of measured times.

use std::time::Duration;

/// The number of concurrent executions of `1+1` when executions per second are measured.
pub(crate) const IN_FLIGHT: usize = 8;
/// The number of executions of `1+1` by which executions per second are measured.
pub(crate) const EXECUTIONS: usize = 1_000;

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// Measured times in ascending order.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// Sorts the times. Returns `None` if there are no times.
    pub(crate) fn new(mut times: Vec<Duration>) -> Option<Self> {
        times.sort();
        (!times.is_empty()).then_some(Self(times))
    }

    /// Returns a percentile of the times, in ms; 50 is the median.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        millis(self.0[(self.0.len() * percent / 100).min(self.0.len() - 1)])
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
