//! Token bucket, as the generic cell rate algorithm: the only state is the time at which the bucket will be full again.
//!
//! Its tokens are units of what is limited: calls, runs, requests, log lines, bytes, or CPU time. A use that can be
//! refused or delayed reserves one unit. A use whose cost is known only afterwards is charged in full, even if fewer
//! units are left. The bucket is then in debt, and reservations are refused until the debt is refilled. If such a cost
//! were charged in parts that can each be refused, a peer that retries as instructed could be refused forever.

use std::time::{Duration, Instant};

/// A token bucket.
#[derive(Debug)]
pub struct TokenBucket {
    /// The time in which one unit is refilled.
    unit: Duration,
    /// The time in which an empty bucket becomes full.
    burst: Duration,
    full_at: Instant,
}

impl TokenBucket {
    /// Creates a bucket with `burst` units, into which one unit is refilled in each interval `unit`.
    pub fn new(unit: Duration, burst: u32, now: Instant) -> Self {
        let unit = unit.max(Duration::from_nanos(1));
        Self { unit, burst: unit.saturating_mul(burst), full_at: now }
    }

    /// Takes one unit, and returns how long to wait before it is used: zero if it is left.
    ///
    /// # Errors
    /// The time until a unit is left, if it is above `wait_max`. No unit is then taken.
    pub fn reserve(&mut self, wait_max: Duration, now: Instant) -> Result<Duration, Duration> {
        let used = self.time_until_full(now) + self.unit;
        let wait = used.saturating_sub(self.burst);
        if wait > wait_max {
            return Err(wait);
        }
        self.full_at = now + used;
        Ok(wait)
    }

    /// Takes `units`, even if fewer are left. Returns what [`Self::debt_wait`] returns afterwards.
    pub fn charge(&mut self, units: u32, now: Instant) -> Option<Duration> {
        self.full_at = now + self.time_until_full(now) + self.unit.saturating_mul(units);
        self.debt_wait(now)
    }

    /// Gives a reserved unit back.
    pub fn refund(&mut self) {
        self.full_at = self.full_at.checked_sub(self.unit).unwrap_or(self.full_at);
    }

    /// Returns the time until a unit is left, if more units are used than a full bucket has.
    pub fn debt_wait(&self, now: Instant) -> Option<Duration> {
        let used = self.time_until_full(now);
        (used > self.burst).then(|| used + self.unit - self.burst)
    }

    /// Returns the number of units that are left.
    pub fn remaining(&self, now: Instant) -> u32 {
        let left = self.burst.saturating_sub(self.time_until_full(now));
        u32::try_from(left.as_nanos() / self.unit.as_nanos()).unwrap_or(u32::MAX)
    }

    /// Returns whether the bucket is full, so that it differs in nothing from a new one.
    pub fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }

    fn time_until_full(&self, now: Instant) -> Duration {
        self.full_at.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);
    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn a_burst_is_left_at_once_and_comes_back_unit_by_unit() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(SECOND, 3, now);
        assert_eq!(
            [(); 4].map(|()| bucket.reserve(AT_ONCE, now)),
            [Ok(AT_ONCE), Ok(AT_ONCE), Ok(AT_ONCE), Err(SECOND)]
        );
        assert_eq!(bucket.reserve(AT_ONCE, now + SECOND), Ok(AT_ONCE));
        assert_eq!(bucket.reserve(AT_ONCE, now + SECOND), Err(SECOND));
        assert_eq!(bucket.remaining(now + 3 * SECOND), 2);
        assert_eq!(bucket.remaining(now + 3_600 * SECOND), 3, "no more than the burst");
    }

    #[test]
    fn a_reservation_may_wait_up_to_its_bound_and_a_refused_one_takes_nothing() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(SECOND, 1, now);
        assert_eq!(
            [(); 4].map(|()| bucket.reserve(2 * SECOND, now)),
            [Ok(AT_ONCE), Ok(SECOND), Ok(2 * SECOND), Err(3 * SECOND)]
        );
        assert_eq!(bucket.reserve(2 * SECOND, now + SECOND), Ok(2 * SECOND));
    }

    #[test]
    fn a_charge_above_the_rest_is_a_debt_that_is_refilled() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(SECOND, 3, now);
        assert_eq!(bucket.charge(3, now), None);
        assert_eq!(
            (bucket.charge(2, now), bucket.debt_wait(now), bucket.remaining(now)),
            (Some(3 * SECOND), Some(3 * SECOND), 0)
        );
        assert_eq!(bucket.reserve(AT_ONCE, now), Err(3 * SECOND));
        // After the wait that was returned, a unit is left.
        assert_eq!(bucket.debt_wait(now + 3 * SECOND), None);
        assert_eq!(bucket.reserve(AT_ONCE, now + 3 * SECOND), Ok(AT_ONCE));
    }

    #[test]
    fn a_refunded_unit_can_be_reserved_again_and_never_fills_a_bucket_above_its_burst() {
        let now = Instant::now();
        let mut bucket = TokenBucket::new(SECOND, 1, now);
        for _ in 0..100 {
            assert_eq!(bucket.reserve(AT_ONCE, now), Ok(AT_ONCE));
            bucket.refund();
        }
        bucket.refund();
        assert_eq!(bucket.reserve(AT_ONCE, now), Ok(AT_ONCE));
        assert_eq!(bucket.reserve(AT_ONCE, now), Err(SECOND));
    }

    proptest! {
        /// The bucket gives what a counter gives that is refilled with time, and its waits are exact.
        #[test]
        fn a_bucket_is_a_counter_that_time_refills(
            rate in (1..50_u32, 1..20_u32),
            steps in prop::collection::vec((0..3_000_u64, 0..30_u32), 1..60),
        ) {
            let (unit_ms, burst) = rate;
            let mut now = Instant::now();
            let mut bucket = TokenBucket::new(Duration::from_millis(unit_ms.into()), burst, now);
            // The tokens of the model, in thousandths of a second.
            let full = i64::from(unit_ms * burst);
            let mut left = full;
            for (pause_ms, units) in steps {
                now += Duration::from_millis(pause_ms / 10);
                left = full.min(left + pause_ms as i64 / 10);
                if units == 0 {
                    let wait = i64::from(unit_ms) - left;
                    let reserved = bucket.reserve(AT_ONCE, now);
                    prop_assert_eq!(reserved.is_ok(), wait <= 0);
                    match reserved {
                        Ok(_) => left -= i64::from(unit_ms),
                        Err(reported) => prop_assert_eq!(reported.as_millis() as i64, wait),
                    }
                } else {
                    left -= i64::from(units * unit_ms);
                    prop_assert_eq!(bucket.charge(units, now).is_some(), left < 0);
                }
                prop_assert_eq!(i64::from(bucket.remaining(now)), left.max(0) / i64::from(unit_ms));
                prop_assert_eq!(bucket.is_full(now), left == full);
            }
        }
    }
}
