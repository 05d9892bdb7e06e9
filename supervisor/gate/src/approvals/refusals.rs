//! Questions that people have refused one after the other: how long nobody is asked again.
//!
//! A program that is refused can be run again, so this is counted for each client, over all of its executions.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use lockhouse_base::principal::Owner;
use tokio::sync::Notify;

/// Questions that are refused in a row before there is a pause; of one tool in one execution, before there is no other.
pub(super) const IN_A_ROW_MAX: u32 = 3;
/// The first pause. Each further refusal doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// After so long without a refusal a client begins anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
/// Clients whose refusals are counted. The one that was refused longest ago makes room.
const CLIENTS_MAX: usize = 1_024;

/// Refusals in a row and open questions, for each client.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    counts: Mutex<Counts>,
    /// A question was closed.
    closed: Notify,
}

#[derive(Debug, Default)]
struct Counts {
    rows: HashMap<Owner, Row>,
    /// Clients with questions that are open, and how many.
    open: HashMap<Owner, u32>,
}

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
        let Row { count, last } = *self.counts.lock().rows.get(&owner)?;
        let left = pause_after(count).checked_sub(last.elapsed()).filter(|left| !left.is_zero())?;
        Some(Pause { left, refusals: count })
    }

    /// A person refused a question of this client, or did not answer it.
    pub(super) fn refused(&self, owner: Owner) {
        let rows = &mut self.counts.lock().rows;
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
        self.counts.lock().rows.remove(&owner);
    }

    /// Waits until this client may have another question open. It has no more open than can be refused before there is a
    /// pause, so that a pause holds for executions that ask at the same time too.
    pub(super) async fn turn(&self, owner: Owner) -> Turn<'_> {
        loop {
            let mut closed = pin!(self.closed.notified());
            // What is closed from here on is heard of.
            closed.as_mut().enable();
            if self.has_opened(owner) {
                return Turn { refusals: self, owner };
            }
            closed.await;
        }
    }

    /// Counts one more open question of a client, unless it has as many as it may have.
    fn has_opened(&self, owner: Owner) -> bool {
        let Counts { rows, open } = &mut *self.counts.lock();
        let row = rows.get(&owner).filter(|row| row.last.elapsed() <= FORGOTTEN_AFTER).map(|row| row.count);
        let most = IN_A_ROW_MAX.saturating_sub(row.unwrap_or(0)).max(1);
        let open = open.entry(owner).or_default();
        if *open >= most {
            return false;
        }
        *open += 1;
        true
    }
}

/// The right of a client to have a question open, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'r> {
    refusals: &'r Refusals,
    owner: Owner,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut counts = self.refusals.counts.lock();
        if let Some(open) = counts.open.get_mut(&self.owner) {
            *open -= 1;
            if *open == 0 {
                counts.open.remove(&self.owner);
            }
        }
        drop(counts);
        self.refusals.closed.notify_waiters();
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

    #[tokio::test]
    async fn a_client_has_no_more_questions_open_than_can_be_refused_before_a_pause() {
        let (refusals, owner) = (Refusals::default(), Owner::of_name("a"));
        let mut turns = Vec::new();
        for _ in 0..IN_A_ROW_MAX {
            turns.push(refusals.turn(owner).await);
        }
        assert!(!refusals.has_opened(owner));
        drop(refusals.turn(Owner::of_name("b")).await);
        for refused in 1..=IN_A_ROW_MAX {
            refusals.refused(owner);
            turns.pop();
            let is_last = refused == IN_A_ROW_MAX;
            assert_eq!((refusals.has_opened(owner), refusals.pause(owner).is_some()), (is_last, is_last));
        }
        let (owner, mut waiting) = (Owner::of_name("c"), tokio::task::JoinSet::new());
        let refusals = std::sync::Arc::new(Refusals::default());
        for _ in 0..20 {
            let refusals = refusals.clone();
            waiting.spawn(async move {
                let _turn = refusals.turn(owner).await;
                assert!(refusals.counts.lock().open[&owner] <= IN_A_ROW_MAX);
                tokio::task::yield_now().await;
            });
        }
        waiting.join_all().await;
        assert!(!refusals.counts.lock().open.contains_key(&owner));
    }

    #[test]
    fn the_clients_that_are_counted_are_bounded_and_the_latest_stay() {
        let refusals = Refusals::default();
        let owner = |number: usize| Owner::of_name(&number.to_string());
        for number in 0..CLIENTS_MAX * 2 {
            (0..3).for_each(|_| refusals.refused(owner(number)));
        }
        assert_eq!(refusals.counts.lock().rows.len(), CLIENTS_MAX);
        assert!(refusals.pause(owner(CLIENTS_MAX * 2 - 1)).is_some());
    }
}
