//! Limits how often unauthenticated peers can cause costly work, such as TLS handshakes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::keyed_limiter::KeyedLimiter;
use lockhouse_policies::Rate;

use super::limit_key::LimitKey;

/// Maximum burst of permits, as a number of seconds: a peer that was idle may at once use as many permits as it could
/// otherwise use during this time.
const BURST_S: u32 = 4;
/// Maximum time that a peer waits for a permit.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(500);

/// Grants each peer a number of permits per second. Clones share the state.
#[derive(Clone, Debug)]
pub(super) struct RateLimiter {
    rate: Rate,
    peers: Arc<KeyedLimiter<LimitKey>>,
}

/// A permit for one costly operation of a peer, such as a TLS handshake. It can be refunded.
#[derive(Debug)]
pub(super) struct RatePermit {
    limiter: RateLimiter,
    key: LimitKey,
}

impl RateLimiter {
    pub(super) fn per_second(permits: u32) -> Self {
        let rate = Rate::new(permits, Duration::from_secs(1), permits.saturating_mul(BURST_S));
        Self { rate, peers: Arc::default() }
    }

    /// Reserves a permit for a peer. Returns the permit, and how long to wait before using it.
    ///
    /// # Errors
    /// The wait, if it would exceed [`WAIT_MAX`]. No permit was taken.
    pub(super) fn reserve(&self, key: LimitKey) -> Result<(RatePermit, Duration), Duration> {
        let now = Instant::now();
        let wait = self.peers.bucket(key, self.rate, now).reserve(WAIT_MAX, now)?;
        Ok((RatePermit { limiter: self.clone(), key }, wait))
    }
}

impl RatePermit {
    /// Gives the permit back to the peer, because the client has authenticated.
    pub(super) fn refund(self) {
        self.limiter.peers.bucket(self.key, self.limiter.rate, Instant::now()).refund();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str) -> LimitKey {
        LimitKey::Address(address.parse().expect("an address"))
    }

    #[test]
    fn a_key_above_its_rate_waits_up_to_a_bound_and_others_do_not() {
        let rate = RateLimiter::per_second(4);
        let (one, other) = (key("192.0.2.1"), key("192.0.2.2"));
        let wait = |key| rate.reserve(key).map(|(_, wait)| wait);
        assert!((0..16).all(|_| wait(one) == Ok(Duration::ZERO)), "what four seconds permit comes at once");
        let waits = [wait(one), wait(one)].map(|wait| wait.expect("a permit").as_millis().div_ceil(10));
        assert!((20..=25).contains(&waits[0]) && (45..=50).contains(&waits[1]), "{waits:?}");
        assert!(wait(one).expect_err("no permit") > WAIT_MAX);
        assert_eq!(wait(other), Ok(Duration::ZERO));
    }

    #[test]
    fn a_refunded_permit_costs_nothing() {
        let (rate, one) = (RateLimiter::per_second(4), key("192.0.2.1"));
        for _ in 0..100 {
            let (permit, wait) = rate.reserve(one).expect("a permit");
            assert_eq!(wait, Duration::ZERO);
            permit.refund();
        }
    }
}
