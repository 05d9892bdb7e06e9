//! The time between two attempts to reach a destination.

use std::time::Duration;

/// Time before the second attempt. It doubles with each further one.
const FIRST: Duration = Duration::from_millis(500);
/// Maximum time between two attempts to reach a destination of the audit log.
/// Bound: the audit log.
const LONGEST: Duration = Duration::from_secs(60);

/// How long to wait before the next attempt.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Starts again with the shortest time, after a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the time to wait after a further failure: 50 % to 100 % of a time that doubles, so that the machines whose
    /// receiver was away do not all return at once. `at_least` is what the receiver asks for.
    pub(crate) fn next(&mut self, at_least: Option<Duration>) -> Duration {
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        let time = doubled.mul_f64(0.5 + fastrand::f64() / 2.0);
        time.max(at_least.unwrap_or_default().min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_doubles_up_to_a_minute_and_starts_again_after_a_success() {
        let mut backoff = Backoff::default();
        for at in 0..200 {
            let most = FIRST.saturating_mul(2_u32.saturating_pow(at)).min(LONGEST);
            let time = backoff.next(None);
            assert!(time >= most / 2 && time <= most, "{at}: {time:?}");
        }
        assert_eq!(backoff.next(Some(Duration::MAX)), LONGEST);
        backoff.reset();
        assert!(backoff.next(None) <= FIRST);
    }
}
