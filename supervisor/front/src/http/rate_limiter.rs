//! Limits how often unauthenticated peers can cause costly work, such as TLS handshakes.
//!
//! The crate `governor` is not used, because a connection must be able to reserve a permit and then wait
//! for it, and because the permit is refunded when the client authenticates.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::limit_key::LimitKey;

/// Maximum burst of permits, as a time: a peer that was idle may at once use as many permits as it could otherwise use
/// during this time.
const BURST: Duration = Duration::from_secs(4);
/// Maximum time that a peer waits for a permit.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(500);
/// Number of peers in memory from which on peers are removed: those that were idle long enough to have all their
/// permits again.
const KEYS_MAX: usize = 10_000;

/// Grants each peer a number of permits per second (generic cell rate algorithm). Clones share the state.
#[derive(Clone, Debug)]
pub(super) struct RateLimiter {
    interval: Duration,
    /// For each peer, the time at which it will have all its permits again if it uses no more.
    due: Arc<Mutex<HashMap<LimitKey, Instant>>>,
}

/// The error if a permit would become available later than [`WAIT_MAX`]. No permit was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateExceeded;

/// A permit for one costly operation of a peer, such as a TLS handshake. It can be refunded.
#[derive(Debug)]
pub(super) struct RatePermit {
    limiter: RateLimiter,
    key: LimitKey,
}

impl RateLimiter {
    pub(super) fn per_second(permits: u32) -> Self {
        Self { interval: Duration::from_secs(1) / permits.max(1), due: Arc::default() }
    }

    /// Reserves a permit for a peer. Returns the permit, and how long to wait before using it.
    ///
    /// # Errors
    /// [`RateExceeded`] if the wait would exceed [`WAIT_MAX`].
    pub(super) fn reserve(&self, key: LimitKey) -> Result<(RatePermit, Duration), RateExceeded> {
        self.reserve_at(key, Instant::now())
    }

    fn reserve_at(&self, key: LimitKey, now: Instant) -> Result<(RatePermit, Duration), RateExceeded> {
        let mut due = locked(&self.due);
        if due.len() >= KEYS_MAX {
            due.retain(|_, due| *due > now);
        }
        let next = due.get(&key).map_or(now, |due| now.max(*due)) + self.interval;
        let wait = next.saturating_duration_since(now).saturating_sub(BURST);
        if wait > WAIT_MAX {
            return Err(RateExceeded);
        }
        due.insert(key, next);
        Ok((RatePermit { limiter: self.clone(), key }, wait))
    }
}

impl RatePermit {
    /// Gives the permit back to the peer, because the client has authenticated.
    pub(super) fn refund(self) {
        if let Some(due) = locked(&self.limiter.due).get_mut(&self.key) {
            *due = due.checked_sub(self.limiter.interval).unwrap_or(*due);
        }
    }
}

fn locked(due: &Mutex<HashMap<LimitKey, Instant>>) -> MutexGuard<'_, HashMap<LimitKey, Instant>> {
    due.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(address: &str) -> LimitKey {
        LimitKey::Address(address.parse().expect("an address"))
    }

    #[test]
    fn a_key_above_its_rate_waits_up_to_a_bound_and_others_do_not() {
        let (rate, began) = (RateLimiter::per_second(4), Instant::now());
        let (one, other) = (key("192.0.2.1"), key("192.0.2.2"));
        let wait = |key, after: u64| {
            let turn = rate.reserve_at(key, began + Duration::from_millis(after));
            turn.map(|(_, wait)| wait.as_millis())
        };
        assert!((0..16).all(|_| wait(one, 0) == Ok(0)), "what four seconds permit comes at once");
        assert_eq!([wait(one, 0), wait(one, 0)], [Ok(250), Ok(500)]);
        assert_eq!(wait(one, 0), Err(RateExceeded));
        assert_eq!(wait(other, 0), Ok(0));
        assert_eq!(wait(one, 250), Ok(500), "what was refused has cost no turn");
        assert_eq!(wait(one, 10_000), Ok(0));
    }

    #[test]
    fn a_refunded_permit_costs_nothing() {
        let (rate, now, one) = (RateLimiter::per_second(4), Instant::now(), key("192.0.2.1"));
        for _ in 0..100 {
            let (turn, wait) = rate.reserve_at(one, now).expect("a turn");
            assert_eq!(wait, Duration::ZERO);
            turn.refund();
        }
    }
}
