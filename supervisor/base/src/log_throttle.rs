//! Limits the rate of log lines that AI clients or upstream servers can cause as often as they want.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// The interval in which a [`LogThrottle`] with default settings admits one line.
const DEFAULT_EVERY: Duration = Duration::from_secs(10);

/// Limits the rate of one kind of log line, and counts the suppressed lines.
#[derive(Debug)]
pub struct LogThrottle {
    limiter: DefaultDirectRateLimiter,
    left_out: AtomicU64,
}

impl Default for LogThrottle {
    fn default() -> Self {
        Self::new(1, DEFAULT_EVERY)
    }
}

impl LogThrottle {
    /// Creates a throttle that admits `burst` lines at once, and one more in each interval `every`.
    pub fn new(burst: u32, every: Duration) -> Self {
        let burst = NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::with_period(every).unwrap_or(Quota::per_second(burst));
        Self { limiter: RateLimiter::direct(quota.allow_burst(burst)), left_out: AtomicU64::new(0) }
    }

    /// If a line may be written now, returns the number of lines that were suppressed since the last admitted line.
    /// Otherwise counts this line as suppressed and returns `None`.
    pub fn admit(&self) -> Option<u64> {
        if self.limiter.check().is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }

    /// Calls `write` if a line may be written now. The argument of `write` is a suffix for the line with the number of
    /// suppressed lines; it is empty if there were none.
    pub fn write(&self, write: impl FnOnce(&str)) {
        match self.admit() {
            None => {}
            Some(0) => write(""),
            Some(times) => write(&format!(" ({times} more times since this was last said)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_what_follows_is_left_out() {
        let throttle = LogThrottle::new(3, Duration::from_secs(3_600));
        let admitted: Vec<_> = (0..10).map(|_| throttle.admit()).collect();
        assert_eq!(admitted[..3], [Some(0); 3]);
        assert_eq!(admitted[3..], [None; 7]);
    }

    #[test]
    fn a_line_says_how_often_it_was_left_out() {
        let throttle = LogThrottle::new(1, Duration::from_millis(50));
        let mut lines: Vec<String> = Vec::new();
        while lines.last().is_none_or(String::is_empty) {
            throttle.write(|times| lines.push(times.to_owned()));
        }
        let last = lines.pop().expect("a line");
        assert!(last.starts_with(" (") && last.ends_with(" more times since this was last said)"), "{last}");
    }
}
