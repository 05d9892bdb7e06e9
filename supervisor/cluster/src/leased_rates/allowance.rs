//! The units of a rate that this host may spend. It does no I/O.

use std::time::Duration;

use lockhouse_base::token_bucket::TokenBucket;
use lockhouse_policies::Rate;
use tokio::time::Instant;

/// The units of one rate.
#[derive(Debug)]
pub(super) struct Allowance {
    units: u32,
    /// Whether a further block is on its way.
    is_refilling: bool,
    /// When the next block is there. `None` if that is not known yet.
    refilled_at: Option<Instant>,
    used: Instant,
    /// The time in which the whole rate is there again.
    period: Duration,
    /// This host's part of the rate. Used while the hosts cannot share it.
    alone: Option<TokenBucket>,
}

impl Allowance {
    /// Begins with one block, which this host has not taken from the others.
    pub(super) fn new(block: u32, rate: Rate, now: Instant) -> Self {
        let period = (rate.per / rate.calls.get()).saturating_mul(rate.burst.get());
        Self { units: block, is_refilling: false, refilled_at: None, used: now, period, alone: None }
    }

    /// Takes one unit.
    ///
    /// # Errors
    /// The time until the next block is there.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.used = now;
        match self.units.checked_sub(1) {
            Some(left) => {
                self.units = left;
                Ok(())
            }
            None => Err(self.refilled_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))),
        }
    }

    /// Whether a further block must be fetched now: half of one is left at most, and none is on its way.
    pub(super) fn begin_refill(&mut self, block: u32) -> bool {
        let begins = !self.is_refilling && self.units <= block / 2;
        self.is_refilling |= begins;
        begins
    }

    /// Takes a block of this host's part of the rate, because the hosts cannot share it now. Returns the time until it is there.
    pub(super) fn charge_alone(&mut self, rate: Rate, block: u32, hosts: u32, now: Instant) -> Duration {
        let (unit, burst) =
            ((rate.per / rate.calls.get()).saturating_mul(hosts), (rate.burst.get() / hosts).max(1));
        let now = now.into_std();
        let bucket = self.alone.get_or_insert_with(|| TokenBucket::new(unit, burst, now));
        bucket.charge(block, now).unwrap_or_default()
    }

    /// The hosts share the rate again.
    pub(super) fn share_again(&mut self) {
        self.alone = None;
    }

    pub(super) fn wait_until(&mut self, refilled_at: Instant) {
        self.refilled_at = Some(refilled_at);
    }

    /// Adds the block that was on its way.
    pub(super) fn refill(&mut self, block: u32) {
        self.units = self.units.saturating_add(block);
        (self.is_refilling, self.refilled_at) = (false, None);
    }

    /// Whether the allowance was not used for so long that the whole rate is there again, and it can begin anew.
    pub(super) fn is_idle(&self, now: Instant) -> bool {
        !self.is_refilling && now.duration_since(self.used) >= self.period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_fetched_when_half_of_one_is_left() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut allowance = Allowance::new(2, Rate::new(1, second, 10), now);
        assert!(allowance.take(now).is_ok() && allowance.begin_refill(2) && !allowance.begin_refill(2));
        assert!(allowance.take(now).is_ok());
        assert_eq!(allowance.take(now), Err(Duration::ZERO), "the time is not known yet");
        allowance.wait_until(now + 3 * second);
        assert_eq!(allowance.take(now + second), Err(2 * second));
        assert!(!allowance.is_idle(now + 60 * second), "a block is on its way");
        allowance.refill(2);
        assert!(allowance.take(now).is_ok() && allowance.begin_refill(2));
        allowance.refill(2);
        assert!(!allowance.is_idle(now + 9 * second) && allowance.is_idle(now + 10 * second));
    }

    #[test]
    fn a_host_alone_has_its_part_of_the_rate() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let rate = Rate::new(1, second, 12);
        let mut allowance = Allowance::new(1, rate, now);
        let waits = [(); 6].map(|()| allowance.charge_alone(rate, 1, 3, now).as_secs());
        assert_eq!(
            waits,
            [0, 0, 0, 0, 6, 9],
            "a third of what may be used at once, and then a third of the rate"
        );
        allowance.share_again();
        assert_eq!(allowance.charge_alone(rate, 1, 3, now), Duration::ZERO, "it begins anew");
    }
}
