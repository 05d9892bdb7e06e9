//! How much each AI client may use: so many units at once, and then as they come back (the generic cell rate algorithm).
//!
//! What a request costs is known only once it has been read. So a request is charged in full, which may bring its client into
//! debt, and a client in debt waits.
//!
//! Not `governor`, which has no debts: it charges nothing for what is more than there is left.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::time::{Duration, Instant};

use lockhouse_policies::Rate;

use crate::principal::Owner;

/// Accounts that are kept; above that, those that are full are forgotten.
const ACCOUNTS_MAX: usize = 10_000;

/// An account for each client.
#[derive(Debug)]
pub struct Allowance {
    /// In which one unit comes back.
    unit: Duration,
    /// In which an empty account is full.
    full: Duration,
    /// When each account is full again; those that are full need not be here.
    full_at: Mutex<HashMap<Owner, Instant>>,
}

impl Allowance {
    pub fn new(rate: Rate) -> Self {
        let unit = (rate.per / rate.calls.get()).max(Duration::from_nanos(1));
        Self { unit, full: unit * rate.burst.get(), full_at: Mutex::default() }
    }

    /// Takes one unit, or says how long until there is one.
    pub fn take(&self, owner: Owner, now: Instant) -> Result<(), Duration> {
        let mut accounts = self.accounts();
        let missing = missing(&accounts, owner, now) + self.unit;
        if owner.is_limited() && missing > self.full {
            return Err(missing - self.full);
        }
        self.set(&mut accounts, owner, missing, now);
        Ok(())
    }

    /// Takes what was used, at most a full account, whether it is there or not.
    pub fn charge(&self, owner: Owner, units: u32, now: Instant) {
        let mut accounts = self.accounts();
        let used = self.unit.saturating_mul(units).min(self.full);
        let missing = missing(&accounts, owner, now) + used;
        self.set(&mut accounts, owner, missing, now);
    }

    /// How long until a client that is in debt may take a unit again; none for one that is not.
    pub fn debt(&self, owner: Owner, now: Instant) -> Option<Duration> {
        let missing = missing(&self.accounts(), owner, now);
        (owner.is_limited() && missing > self.full).then(|| missing + self.unit - self.full)
    }

    fn set(&self, accounts: &mut HashMap<Owner, Instant>, owner: Owner, missing: Duration, now: Instant) {
        if !owner.is_limited() {
            return;
        }
        if accounts.len() >= ACCOUNTS_MAX {
            accounts.retain(|_, full_at| *full_at > now);
        }
        accounts.insert(owner, now + missing);
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Owner, Instant>> {
        self.full_at.lock()
    }
}

/// In which the account will be full.
fn missing(accounts: &HashMap<Owner, Instant>, owner: Owner, now: Instant) -> Duration {
    accounts.get(&owner).map_or(Duration::ZERO, |full_at| full_at.saturating_duration_since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Three units, of which one comes back in a second.
    fn three() -> Allowance {
        let rate = Rate::parse("60/min").expect("a rate");
        Allowance::new(Rate { burst: 3.try_into().expect("a number"), ..rate })
    }

    #[test]
    fn units_are_there_at_once_and_come_back_and_are_each_clients_own() {
        let (allowance, now) = (three(), Instant::now());
        let (one, other) = (Owner::of_name("token:one"), Owner::of_name("token:other"));
        for _ in 0..3 {
            assert_eq!(allowance.take(one, now), Ok(()));
        }
        assert_eq!(allowance.take(one, now), Err(SECOND));
        assert_eq!(allowance.take(other, now), Ok(()));
        assert_eq!(allowance.take(one, now + SECOND), Ok(()));
        assert_eq!(allowance.take(one, now + SECOND), Err(SECOND));
    }

    #[test]
    fn who_is_charged_more_than_there_was_waits_until_it_is_paid_and_never_for_ever() {
        let (allowance, now) = (three(), Instant::now());
        let (one, other) = (Owner::of_name("token:one"), Owner::of_name("token:other"));
        assert_eq!(allowance.take(one, now), Ok(()));
        assert_eq!(allowance.debt(one, now), None);
        allowance.charge(one, 1_000_000, now);
        let wait = allowance.debt(one, now).expect("a debt");
        assert_eq!((wait, allowance.debt(other, now)), (2 * SECOND, None));
        assert_eq!(allowance.take(one, now), Err(wait));
        // After the time that was said it may send the same again.
        assert_eq!(allowance.take(one, now + wait), Ok(()));
        assert_eq!(allowance.debt(one, now + wait), None);
    }

    #[test]
    fn who_started_the_process_is_not_counted_and_full_accounts_are_forgotten() {
        let (allowance, now) = (three(), Instant::now());
        allowance.charge(Owner::LOCAL, 1_000, now);
        assert_eq!((allowance.take(Owner::LOCAL, now), allowance.debt(Owner::LOCAL, now)), (Ok(()), None));
        for number in 0..ACCOUNTS_MAX {
            assert_eq!(allowance.take(Owner::of_name(&number.to_string()), now), Ok(()));
        }
        assert_eq!(allowance.take(Owner::of_name("new"), now + 2 * SECOND), Ok(()));
        assert_eq!(allowance.accounts().len(), 1);
    }
}
