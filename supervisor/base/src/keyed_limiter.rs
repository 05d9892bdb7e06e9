//! Rate limiter with one token bucket for each key, such as an AI client or the address of a peer.

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use lockhouse_policies::Rate;

use crate::token_bucket::TokenBucket;

/// Number of buckets in memory from which on the full ones are removed.
const BUCKETS_MAX: usize = 10_000;

/// The token buckets of the keys. A key without a bucket has all its units.
#[derive(Debug)]
pub struct KeyedLimiter<K>(Mutex<HashMap<K, TokenBucket>>);

impl<K> Default for KeyedLimiter<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> KeyedLimiter<K> {
    /// Locks all buckets, and returns the bucket of this key, in which a call of the rate is one unit. `rate` must be the
    /// same whenever a key is used.
    pub fn bucket(&self, key: K, rate: Rate, now: Instant) -> MappedMutexGuard<'_, TokenBucket> {
        MutexGuard::map(self.0.lock(), |buckets| {
            if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&key) {
                buckets.retain(|_, bucket| !bucket.is_full(now));
            }
            buckets
                .entry(key)
                .or_insert_with(|| TokenBucket::new(rate.per / rate.calls.get(), rate.burst.get(), now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_key_has_its_own_units_and_full_buckets_are_removed() {
        let (limiter, now) = (KeyedLimiter::default(), Instant::now());
        let second = Duration::from_secs(1);
        let reserve =
            |key, now| limiter.bucket(key, Rate::new(1, second, 1), now).reserve(Duration::ZERO, now).is_ok();
        assert_eq!([reserve(0, now), reserve(0, now), reserve(1, now)], [true, false, true]);
        assert!((2..BUCKETS_MAX).all(|key| reserve(key, now)));
        assert!(reserve(BUCKETS_MAX, now));
        assert_eq!(limiter.0.lock().len(), BUCKETS_MAX + 1, "control: none is full");
        assert!(!reserve(0, now), "a bucket that is not full is kept");
        assert!(reserve(BUCKETS_MAX + 1, now + second));
        assert_eq!(limiter.0.lock().len(), 1);
    }
}
