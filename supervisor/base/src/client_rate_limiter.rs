//! Rate limiter with one account for each AI client. It implements the generic cell rate algorithm.
//!
//! An account holds units: runs, or requests. A large request costs several units, and its cost is known only after it
//! has been read. It is then charged in full, even if its client has fewer units left. The client is then in debt, and
//! its further requests are refused until the debt is refilled.
//!
//! The crate `governor` cannot be used, because it charges nothing for a request that costs more units than are left.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use lockhouse_policies::Rate;

use lockhouse_messages::Owner;

/// Number of client accounts in memory above which full accounts are removed.
const ACCOUNTS_MAX: usize = 10_000;

/// Limits the rate at which each AI client may use units, which are runs or requests.
#[derive(Debug)]
pub struct ClientRateLimiter {
    /// The time in which one unit is refilled.
    unit_interval: Duration,
    /// The time in which an empty account becomes full.
    burst_interval: Duration,
    /// The time at which each account will be full again. An account that is missing is full.
    full_at: Mutex<HashMap<Owner, Instant>>,
}

impl ClientRateLimiter {
    pub fn new(rate: Rate) -> Self {
        let unit_interval = (rate.per / rate.calls.get()).max(Duration::from_nanos(1));
        Self { unit_interval, burst_interval: unit_interval * rate.burst.get(), full_at: Mutex::default() }
    }

    /// Takes one unit from the client's account. If no unit is left, returns as `Err` the time until one is available.
    pub fn take(&self, owner: Owner, now: Instant) -> Result<(), Duration> {
        let mut accounts = self.accounts();
        let time_until_full = time_until_full(&accounts, owner, now) + self.unit_interval;
        if owner.is_limited() && time_until_full > self.burst_interval {
            return Err(time_until_full - self.burst_interval);
        }
        self.set(&mut accounts, owner, time_until_full, now);
        Ok(())
    }

    /// Charges the client's account for `units` that were already used, even if fewer are left. Charges at most the
    /// units of a full account.
    pub fn charge(&self, owner: Owner, units: u32, now: Instant) {
        let mut accounts = self.accounts();
        let used = self.unit_interval.saturating_mul(units).min(self.burst_interval);
        let time_until_full = time_until_full(&accounts, owner, now) + used;
        self.set(&mut accounts, owner, time_until_full, now);
    }

    /// Returns the time until a client in debt may take a unit again; `None` if the client has no debt.
    pub fn debt_wait(&self, owner: Owner, now: Instant) -> Option<Duration> {
        let time_until_full = time_until_full(&self.accounts(), owner, now);
        (owner.is_limited() && time_until_full > self.burst_interval)
            .then(|| time_until_full + self.unit_interval - self.burst_interval)
    }

    fn set(
        &self,
        accounts: &mut HashMap<Owner, Instant>,
        owner: Owner,
        time_until_full: Duration,
        now: Instant,
    ) {
        if !owner.is_limited() {
            return;
        }
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.retain(|_, full_at| *full_at > now);
        }
        accounts.insert(owner, now + time_until_full);
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Owner, Instant>> {
        self.full_at.lock()
    }
}

/// Returns the time until the client's account is full; zero if it is full.
fn time_until_full(accounts: &HashMap<Owner, Instant>, owner: Owner, now: Instant) -> Duration {
    accounts.get(&owner).map_or(Duration::ZERO, |full_at| full_at.saturating_duration_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::owner_of_name;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a rate limiter with a burst of three units that refills one unit in a second.
    fn limiter_of_three() -> ClientRateLimiter {
        let rate = Rate::parse("60/min").expect("a rate");
        ClientRateLimiter::new(Rate { burst: 3.try_into().expect("a number"), ..rate })
    }

    #[test]
    fn units_are_there_at_once_and_come_back_and_are_each_clients_own() {
        let (limiter, now) = (limiter_of_three(), Instant::now());
        let (one, other) = (owner_of_name("token:one"), owner_of_name("token:other"));
        for _ in 0..3 {
            assert_eq!(limiter.take(one, now), Ok(()));
        }
        assert_eq!(limiter.take(one, now), Err(SECOND));
        assert_eq!(limiter.take(other, now), Ok(()));
        assert_eq!(limiter.take(one, now + SECOND), Ok(()));
        assert_eq!(limiter.take(one, now + SECOND), Err(SECOND));
    }

    #[test]
    fn who_is_charged_more_than_there_was_waits_until_it_is_paid_and_never_for_ever() {
        let (limiter, now) = (limiter_of_three(), Instant::now());
        let (one, other) = (owner_of_name("token:one"), owner_of_name("token:other"));
        assert_eq!(limiter.take(one, now), Ok(()));
        assert_eq!(limiter.debt_wait(one, now), None);
        limiter.charge(one, 1_000_000, now);
        let wait = limiter.debt_wait(one, now).expect("a debt");
        assert_eq!((wait, limiter.debt_wait(other, now)), (2 * SECOND, None));
        assert_eq!(limiter.take(one, now), Err(wait));
        // After the wait that was returned, the client may use the same amount again.
        assert_eq!(limiter.take(one, now + wait), Ok(()));
        assert_eq!(limiter.debt_wait(one, now + wait), None);
    }

    #[test]
    fn who_started_the_process_is_not_counted_and_full_accounts_are_forgotten() {
        let (limiter, now) = (limiter_of_three(), Instant::now());
        limiter.charge(Owner::LOCAL, 1_000, now);
        assert_eq!((limiter.take(Owner::LOCAL, now), limiter.debt_wait(Owner::LOCAL, now)), (Ok(()), None));
        for number in 0..ACCOUNTS_MAX {
            assert_eq!(limiter.take(owner_of_name(&number.to_string()), now), Ok(()));
        }
        assert_eq!(limiter.take(owner_of_name("new"), now + 2 * SECOND), Ok(()));
        assert_eq!(limiter.accounts().len(), 1);
    }
}
