//! Log lines that strangers can cause as often as they like: some are written, the others are counted.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

/// How often one line is written if nothing else is said.
const PERIOD: Duration = Duration::from_secs(10);

/// The throttle of one kind of line.
#[derive(Debug)]
pub struct LogThrottle {
    limiter: DefaultDirectRateLimiter,
    suppressed: AtomicU64,
}

impl Default for LogThrottle {
    /// One line in 10 s.
    fn default() -> Self {
        Self::new(Quota::with_period(PERIOD).unwrap_or_else(|| Quota::per_second(NonZeroU32::MIN)))
    }
}

impl LogThrottle {
    fn new(quota: Quota) -> Self {
        Self { limiter: RateLimiter::direct(quota), suppressed: AtomicU64::new(0) }
    }

    /// So many lines at once, and as many again in each minute.
    pub fn per_minute(lines: u32) -> Self {
        Self::new(Quota::per_minute(NonZeroU32::new(lines).unwrap_or(NonZeroU32::MIN)))
    }

    /// If a line may be written now: how many were suppressed since the last one.
    pub fn admit(&self) -> Option<u64> {
        if self.limiter.check().is_err() {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.suppressed.swap(0, Ordering::Relaxed))
    }

    /// Writes a line, if it may be written now. `write` gets the end of its text: how many were suppressed.
    pub fn write(&self, write: impl FnOnce(&str)) {
        match self.admit() {
            None => {}
            Some(0) => write(""),
            Some(suppressed) => write(&format!(" ({suppressed} more times since this was last said)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_above_the_rate_are_counted_and_the_next_one_says_how_many() {
        let throttle = LogThrottle::new(Quota::with_period(Duration::from_millis(50)).expect("a period"));
        assert_eq!(throttle.admit(), Some(0));
        while throttle.admit().is_none() {
            std::thread::yield_now();
        }
        // That line has told all of them.
        assert_eq!(throttle.suppressed.load(Ordering::Relaxed), 0);
        throttle.suppressed.store(7, Ordering::Relaxed);
        let mut line = None;
        while line.is_none() {
            throttle.write(|times| line = Some(times.to_owned()));
        }
        let told =
            line.as_deref().and_then(|line| line.strip_prefix(" (")?.split(' ').next()?.parse::<u64>().ok());
        assert!(told.is_some_and(|told| told >= 7), "{line:?}");
    }

    #[test]
    fn a_burst_is_written_up_to_the_lines_of_a_minute() {
        let throttle = LogThrottle::per_minute(20);
        assert_eq!((0..100).filter(|_| throttle.admit().is_some()).count(), 20);
    }
}
