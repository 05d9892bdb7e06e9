//! Limits the rate of log lines that AI clients or upstream servers can cause as often as they want.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::token_bucket::TokenBucket;

/// The interval in which a [`LogThrottle`] with default settings admits one line.
const DEFAULT_EVERY: Duration = Duration::from_secs(10);

/// Limits the rate of one kind of log line, and counts the suppressed lines.
#[derive(Debug)]
pub struct LogThrottle {
    lines: Mutex<TokenBucket>,
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
        let lines = TokenBucket::new(every, burst.max(1), Instant::now());
        Self { lines: Mutex::new(lines), left_out: AtomicU64::new(0) }
    }

    /// If a line may be written now, returns the number of lines that were suppressed since the last admitted line.
    /// Otherwise counts this line as suppressed and returns `None`.
    pub fn admit(&self) -> Option<u64> {
        if self.lines.lock().reserve(Duration::ZERO, Instant::now()).is_err() {
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
