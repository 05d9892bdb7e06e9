//! Questions that people have refused one after the other: how long nobody is asked again.
//!
//! A program that is refused can be run again, so this is counted for each client, over all of its executions.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::principal::Owner;

/// Questions that are refused in a row before there is a pause; of one tool in one execution, before there is no other.
pub(super) const IN_A_ROW_MAX: u32 = 3;
/// The first pause. Each further refusal doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// After so long without a refusal a client begins anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
/// Clients whose refusals are counted. The one that was refused longest ago makes room.
const CLIENTS_MAX: usize = 1_024;

/// Refusals in a row, for each client.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<Owner, Row>>);

#[derive(Clone, Copy, Debug)]
struct Row {
    count: u32,
    last: Instant,
}

/// For how long a client's questions are refused without being put to anybody, and after how many refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    pub(super) left: Duration,
    pub(super) refusals: u32,
}

impl Refusals {
    /// The pause that a client is in, if it is in one.
    pub(super) fn pause(&self, owner: Owner) -> Option<Pause> {
        let Row { count, last } = *self.rows().get(&owner)?;
        let left = pause_after(count).checked_sub(last.elapsed()).filter(|left| !left.is_zero())?;
        Some(Pause { left, refusals: count })
    }

    /// A person refused a question of this client, or did not answer it.
    pub(super) fn refused(&self, owner: Owner) {
        let mut rows = self.rows();
        if rows.len() >= CLIENTS_MAX && !rows.contains_key(&owner) {
            let oldest = rows.iter().min_by_key(|(_, row)| row.last).map(|(owner, _)| *owner);
            oldest.and_then(|oldest| rows.remove(&oldest));
        }
        let row = rows.entry(owner).or_insert(Row { count: 0, last: Instant::now() });
        if row.last.elapsed() > FORGOTTEN_AFTER {
            row.count = 0;
        }
        (row.count, row.last) = (row.count.saturating_add(1), Instant::now());
    }

    /// A person approved a question of this client.
    pub(super) fn approved(&self, owner: Owner) {
        self.rows().remove(&owner);
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<Owner, Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pause_after(refusals: u32) -> Duration {
    match refusals.checked_sub(IN_A_ROW_MAX) {
        None => Duration::ZERO,
        Some(more) => FIRST_PAUSE.saturating_mul(1_u32.checked_shl(more).unwrap_or(u32::MAX)).min(PAUSE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_with_each_refusal_to_its_bound_and_an_approval_ends_it() {
        let seconds = [0, 2, 3, 4, 5, 9, 10, 40, u32::MAX].map(|count| pause_after(count).as_secs());
        assert_eq!(seconds, [0, 0, 30, 60, 120, 600, 600, 600, 600]);
        let (refusals, owner) = (Refusals::default(), Owner::of_name("a"));
        for count in 1..=4 {
            refusals.refused(owner);
            assert_eq!(refusals.pause(owner).map(|pause| pause.refusals), (count >= 3).then_some(count));
        }
        assert_eq!(refusals.pause(Owner::of_name("b")), None);
        refusals.approved(owner);
        assert_eq!(refusals.pause(owner), None);
    }

    #[test]
    fn the_clients_that_are_counted_are_bounded_and_the_latest_stay() {
        let refusals = Refusals::default();
        let owner = |number: usize| Owner::of_name(&number.to_string());
        for number in 0..CLIENTS_MAX * 2 {
            (0..3).for_each(|_| refusals.refused(owner(number)));
        }
        assert_eq!(refusals.rows().len(), CLIENTS_MAX);
        assert!(refusals.pause(owner(CLIENTS_MAX * 2 - 1)).is_some());
    }
}
