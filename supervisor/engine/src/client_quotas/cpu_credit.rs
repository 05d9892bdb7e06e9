//! CPU credit of each AI client, as burstable virtual machines have it: a run that has used up the credit of its
//! client is scheduled as idle work, and the credit refills over time.
//!
//! The rate limiter crate `governor` does not fit, because the remaining credit is read before a run starts, and the
//! used CPU time is deducted after the run has ended.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockhouse_messages::Owner;

/// The full CPU credit of an AI client: the CPU time that it may use at once before its runs are scheduled as idle
/// work.
const CREDIT_MAX: Duration = Duration::from_millis(50);
/// Used CPU time multiplied by this factor is the time until the CPU credit is full again. With 100, the credit grows
/// by one percent of the elapsed time.
const REFILL_FACTOR: u32 = 100;

/// The CPU credit of the AI clients: for each client that has used some, the time at which its credit is full again.
#[derive(Debug, Default)]
pub(super) struct CpuCredit(Mutex<BTreeMap<Owner, Instant>>);

impl CpuCredit {
    /// Returns the CPU credit that this AI client has left at the time `now`. Returns `None` for the user at the
    /// command line and for an AI client on standard input, who have no limit.
    pub(super) fn remaining(&self, owner: Owner, now: Instant) -> Option<Duration> {
        let full_at = self.accounts().get(&owner).copied().unwrap_or(now);
        let missing = full_at.saturating_duration_since(now) / REFILL_FACTOR;
        owner.is_limited().then(|| CREDIT_MAX.saturating_sub(missing))
    }

    /// Deducts the CPU time that a run has used from the CPU credit of its AI client. Deducts at most the full credit.
    pub(super) fn charge(&self, owner: Owner, used: Duration, now: Instant) {
        let mut accounts = self.accounts();
        accounts.retain(|_, full_at| *full_at > now);
        if owner.is_limited() {
            *accounts.entry(owner).or_insert(now) += used.min(CREDIT_MAX) * REFILL_FACTOR;
        }
    }

    fn accounts(&self) -> MutexGuard<'_, BTreeMap<Owner, Instant>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_base::principal::owner_of_name;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn used_credit_refills_over_time() {
        let (credit, now) = (CpuCredit::default(), Instant::now());
        let (one, other) = (owner_of_name("token:one"), owner_of_name("token:other"));
        assert_eq!(credit.remaining(one, now), Some(CREDIT_MAX));
        credit.charge(one, 20 * MS, now);
        assert_eq!(
            [credit.remaining(one, now), credit.remaining(other, now)],
            [Some(30 * MS), Some(CREDIT_MAX)]
        );
        // Concurrent runs each start with the full credit.
        credit.charge(one, CREDIT_MAX, now);
        assert_eq!(credit.remaining(one, now), Some(Duration::ZERO));
        assert_eq!(credit.remaining(one, now + 2_000 * MS), Some(Duration::ZERO));
        assert_eq!(credit.remaining(one, now + 4_000 * MS), Some(20 * MS));
        assert_eq!(credit.remaining(one, now + 60_000 * MS), Some(CREDIT_MAX));
        credit.charge(other, MS, now + 60_000 * MS);
        assert_eq!(credit.accounts().len(), 1, "a full account is forgotten");
    }

    #[test]
    fn a_run_is_charged_at_most_the_full_credit() {
        let (credit, now) = (CpuCredit::default(), Instant::now());
        let owner = owner_of_name("token:one");
        credit.charge(owner, 60_000 * MS, now);
        assert_eq!(credit.remaining(owner, now + 5_000 * MS), Some(CREDIT_MAX));
    }

    #[test]
    fn the_local_user_has_no_cpu_credit_limit() {
        let (credit, now) = (CpuCredit::default(), Instant::now());
        credit.charge(Owner::LOCAL, CREDIT_MAX, now);
        assert_eq!(credit.remaining(Owner::LOCAL, now), None);
    }
}
