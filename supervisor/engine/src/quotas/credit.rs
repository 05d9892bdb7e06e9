//! CPU time that the runs of one AI client have before they give way to all other work, as burstable machines have it: so much
//! at once, and then as it comes back.
//!
//! Not `governor`: what a run has left is asked for before it begins, and what it used is charged once it has ended.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lockhouse_base::principal::Owner;

/// What there is for a client that has rested.
const FULL: Duration = Duration::from_millis(50);
/// What has been used comes back in this many times the time: one percent of a CPU.
const COMES_BACK_IN: u32 = 100;

/// The accounts of all clients that have used some of theirs: when they are full again.
#[derive(Debug, Default)]
pub(super) struct CpuCredit(Mutex<BTreeMap<Owner, Instant>>);

impl CpuCredit {
    /// CPU time that a run of this client has now. None for one that shares with nobody: it never gives way.
    pub(super) fn left(&self, owner: Owner, now: Instant) -> Option<Duration> {
        let full_at = self.accounts().get(&owner).copied().unwrap_or(now);
        let missing = full_at.saturating_duration_since(now) / COMES_BACK_IN;
        owner.is_limited().then(|| FULL.saturating_sub(missing))
    }

    /// Takes what a run has used, of what it had.
    pub(super) fn charge(&self, owner: Owner, used: Duration, now: Instant) {
        let mut accounts = self.accounts();
        accounts.retain(|_, full_at| *full_at > now);
        if owner.is_limited() {
            *accounts.entry(owner).or_insert(now) += used.min(FULL) * COMES_BACK_IN;
        }
    }

    fn accounts(&self) -> MutexGuard<'_, BTreeMap<Owner, Instant>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_used_comes_back_with_time() {
        let (credit, now) = (CpuCredit::default(), Instant::now());
        let (one, other) = (Owner::of_name("token:one"), Owner::of_name("token:other"));
        assert_eq!(credit.left(one, now), Some(FULL));
        credit.charge(one, 20 * MS, now);
        assert_eq!([credit.left(one, now), credit.left(other, now)], [Some(30 * MS), Some(FULL)]);
        // Runs at one time all had the same.
        credit.charge(one, FULL, now);
        assert_eq!(credit.left(one, now), Some(Duration::ZERO));
        assert_eq!(credit.left(one, now + 2_000 * MS), Some(Duration::ZERO));
        assert_eq!(credit.left(one, now + 4_000 * MS), Some(20 * MS));
        assert_eq!(credit.left(one, now + 60_000 * MS), Some(FULL));
        credit.charge(other, MS, now + 60_000 * MS);
        assert_eq!(credit.accounts().len(), 1, "a full account is forgotten");
    }

    #[test]
    fn a_run_is_charged_for_what_it_had_and_not_for_what_it_used_as_it_gave_way() {
        let (credit, now) = (CpuCredit::default(), Instant::now());
        let owner = Owner::of_name("token:one");
        credit.charge(owner, 60_000 * MS, now);
        assert_eq!(credit.left(owner, now + 5_000 * MS), Some(FULL));
    }

    #[test]
    fn who_shares_with_nobody_gives_way_to_nobody() {
        let (credit, now) = (CpuCredit::default(), Instant::now());
        credit.charge(Owner::LOCAL, FULL, now);
        assert_eq!(credit.left(Owner::LOCAL, now), None);
    }
}
