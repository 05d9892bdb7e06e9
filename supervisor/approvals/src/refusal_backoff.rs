//! Backoff after refused approval questions: counts the consecutive refusals of the questions of each AI
//! client. After too many of them, the client's further questions are paused.
//!
//! Refusals are counted across executions, because a refused program can simply be run again.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use lockhouse_messages::Owner;
use tokio::sync::Notify;

/// Number of consecutive refusals of an AI client's approval questions after which its questions are paused.
/// After the same number of refusals of one tool in one execution, no approver is asked about this tool again
/// in the execution.
/// Bound: approvals and questions.
pub(super) const IN_A_ROW_MAX: u32 = 3;
/// Length of the first pause, in which no approval question of an AI client reaches an approver. Each further
/// refusal doubles the length, up to [`PAUSE_MAX`].
/// Bound: approvals and questions.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// Maximum length of the pause in which an AI client's approval questions reach no approver.
/// Bound: approvals and questions.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Time without a refusal after which an AI client's count of refusals restarts at zero.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3_600);
/// Maximum number of AI clients whose refusals are counted. If there are more, the client with the oldest refusal is
/// removed.
/// Bound: approvals and questions.
const CLIENTS_MAX: usize = 1_024;

/// The number of consecutive refused approval questions, and of pending ones, for each AI client.
#[derive(Debug, Default)]
pub(super) struct RefusalTracker {
    counts: Mutex<RefusalState>,
    /// Notified when a question is no longer pending. Tasks that wait because too many questions are pending then
    /// try again.
    closed: Notify,
}

#[derive(Debug, Default)]
struct RefusalState {
    /// The consecutive refusals of approval questions, for each AI client that has any.
    rows: HashMap<Owner, RefusalStreak>,
    /// The number of pending approval questions, for each AI client that has any.
    open: HashMap<Owner, u32>,
}

#[derive(Clone, Copy, Debug)]
struct RefusalStreak {
    count: u32,
    last: Instant,
}

/// A pause in which all approval questions of an AI client are refused without asking an approver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    /// Remaining time of the pause.
    pub(super) left: Duration,
    /// Number of consecutive refusals that caused the pause.
    pub(super) refusals: u32,
}

impl RefusalTracker {
    /// Returns the current pause of an AI client; `None` if its questions are not paused.
    pub(super) fn current_pause(&self, owner: Owner) -> Option<Pause> {
        let RefusalStreak { count, last } = *self.counts.lock().rows.get(&owner)?;
        let left = pause_after(count).checked_sub(last.elapsed()).filter(|left| !left.is_zero())?;
        Some(Pause { left, refusals: count })
    }

    /// Counts a refusal of an approval question of this AI client. A question that nobody answered counts as
    /// refused.
    pub(super) fn record_refusal(&self, owner: Owner) {
        let rows = &mut self.counts.lock().rows;
        if rows.len() >= CLIENTS_MAX && !rows.contains_key(&owner) {
            let oldest = rows.iter().min_by_key(|(_, row)| row.last).map(|(owner, _)| *owner);
            oldest.and_then(|oldest| rows.remove(&oldest));
        }
        let row = rows.entry(owner).or_insert(RefusalStreak { count: 0, last: Instant::now() });
        if row.last.elapsed() > FORGOTTEN_AFTER {
            row.count = 0;
        }
        (row.count, row.last) = (row.count.saturating_add(1), Instant::now());
    }

    /// Resets the count of refusals of an AI client, after an approval.
    pub(super) fn record_approval(&self, owner: Owner) {
        self.counts.lock().rows.remove(&owner);
    }

    /// Waits until this AI client may have one more pending question. It may have as many pending questions as
    /// further refusals would begin a pause, and at least one, so that parallel executions cannot evade the pause.
    pub(super) async fn acquire_question_permit(&self, owner: Owner) -> OpenQuestionPermit<'_> {
        loop {
            let mut closed = pin!(self.closed.notified());
            // After this call, no notification is missed.
            closed.as_mut().enable();
            if self.try_open_question(owner) {
                return OpenQuestionPermit { refusals: self, owner };
            }
            closed.await;
        }
    }

    /// Counts one more pending question of an AI client. Returns `false` without counting if the client has
    /// reached its limit of pending questions.
    fn try_open_question(&self, owner: Owner) -> bool {
        let RefusalState { rows, open } = &mut *self.counts.lock();
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

/// Permits an AI client to have one pending approval question. When the permit is dropped, the question no longer
/// counts as pending.
#[derive(Debug)]
pub(super) struct OpenQuestionPermit<'r> {
    refusals: &'r RefusalTracker,
    owner: Owner,
}

impl Drop for OpenQuestionPermit<'_> {
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

/// Returns the length of the pause after this many consecutive refusals; zero if there is no pause yet.
fn pause_after(refusals: u32) -> Duration {
    match refusals.checked_sub(IN_A_ROW_MAX) {
        None => Duration::ZERO,
        Some(more) => FIRST_PAUSE.saturating_mul(1_u32.checked_shl(more).unwrap_or(u32::MAX)).min(PAUSE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockhouse_base::principal::owner_of_name;

    #[test]
    fn a_pause_grows_with_each_refusal_to_its_bound_and_an_approval_ends_it() {
        let seconds = [0, 2, 3, 4, 5, 9, 10, 40, u32::MAX].map(|count| pause_after(count).as_secs());
        assert_eq!(seconds, [0, 0, 30, 60, 120, 600, 600, 600, 600]);
        let (refusals, owner) = (RefusalTracker::default(), owner_of_name("a"));
        for count in 1..=4 {
            refusals.record_refusal(owner);
            assert_eq!(
                refusals.current_pause(owner).map(|pause| pause.refusals),
                (count >= 3).then_some(count)
            );
        }
        assert_eq!(refusals.current_pause(owner_of_name("b")), None);
        refusals.record_approval(owner);
        assert_eq!(refusals.current_pause(owner), None);
    }

    #[tokio::test]
    async fn a_client_has_no_more_questions_open_than_can_be_refused_before_a_pause() {
        let (refusals, owner) = (RefusalTracker::default(), owner_of_name("a"));
        let mut turns = Vec::new();
        for _ in 0..IN_A_ROW_MAX {
            turns.push(refusals.acquire_question_permit(owner).await);
        }
        assert!(!refusals.try_open_question(owner));
        drop(refusals.acquire_question_permit(owner_of_name("b")).await);
        for refused in 1..=IN_A_ROW_MAX {
            refusals.record_refusal(owner);
            turns.pop();
            let is_last = refused == IN_A_ROW_MAX;
            assert_eq!(
                (refusals.try_open_question(owner), refusals.current_pause(owner).is_some()),
                (is_last, is_last)
            );
        }
        let (owner, mut waiting) = (owner_of_name("c"), tokio::task::JoinSet::new());
        let refusals = std::sync::Arc::new(RefusalTracker::default());
        for _ in 0..20 {
            let refusals = refusals.clone();
            waiting.spawn(async move {
                let _turn = refusals.acquire_question_permit(owner).await;
                assert!(refusals.counts.lock().open[&owner] <= IN_A_ROW_MAX);
                tokio::task::yield_now().await;
            });
        }
        waiting.join_all().await;
        assert!(!refusals.counts.lock().open.contains_key(&owner));
    }

    #[test]
    fn the_number_of_counted_clients_is_bounded() {
        let refusals = RefusalTracker::default();
        let owner = |number: usize| owner_of_name(&number.to_string());
        for number in 0..CLIENTS_MAX * 2 {
            (0..3).for_each(|_| refusals.record_refusal(owner(number)));
        }
        assert_eq!(refusals.counts.lock().rows.len(), CLIENTS_MAX);
        assert!(refusals.current_pause(owner(CLIENTS_MAX * 2 - 1)).is_some());
    }
}
