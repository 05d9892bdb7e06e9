//! Limits how many calls to one upstream server run concurrently, and queues further calls. The time in the queue does
//! not count against a call's timeout.
//!
//! A server of an older protocol version asks its user a question without saying for which call. Once it has done so, the
//! calls of one execution run at a time: each question is then for the AI client of that execution.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lockhouse_protocol::ExecutionId;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::definition::ServerLimits;

/// The slots for concurrent calls to one upstream server, and the queue of calls that wait for a slot.
#[derive(Debug)]
pub(super) struct CallSlots {
    free: Arc<Semaphore>,
    limits: ServerLimits,
    waiting: AtomicUsize,
    turns: Mutex<Turns>,
    last_used: Mutex<Instant>,
    /// Notified whenever a call ends and its slot becomes free.
    slot_freed: Notify,
}

/// Which executions have calls that run or are about to run.
#[derive(Debug, Default)]
struct Turns {
    /// The number of calls of each execution.
    calls: HashMap<ExecutionId, usize>,
    /// The tickets of the calls that wait until no other execution has calls, in the order in which they came.
    waiting: VecDeque<u64>,
    last_ticket: u64,
}

/// Guard that counts a call among those of its execution until it is dropped.
#[derive(Debug)]
struct Turn {
    slots: Arc<CallSlots>,
    execution: ExecutionId,
}

/// A reserved slot, which permits one call to be sent to the upstream server. Dropping it frees the slot.
#[derive(Debug)]
pub struct CallSlot {
    slots: Arc<CallSlots>,
    permit: Option<OwnedSemaphorePermit>,
    turn: Option<Turn>,
}

/// Why a call to an upstream server was not admitted by the limit on concurrent calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SlotError {
    /// The queue already contains the configured maximum number of calls. Contains this maximum.
    QueueFull(usize),
    /// The call got no slot within the configured queue timeout. Contains this timeout.
    QueueTimeout(Duration),
    /// The calls of another execution had not ended within the configured queue timeout, which this contains.
    TurnTimeout(Duration),
}

impl CallSlots {
    pub(super) fn new(limits: ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            free: Arc::new(Semaphore::new(limits.calls_max)),
            limits,
            waiting: AtomicUsize::new(0),
            turns: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            slot_freed: Notify::new(),
        })
    }

    /// Waits for a free slot, in first-in, first-out order. If `is_exclusive` is true, first waits until no other execution
    /// has calls. Returns an error if the queue is full or the queue timeout passes.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        execution: ExecutionId,
        is_exclusive: bool,
    ) -> Result<CallSlot, SlotError> {
        let slot = |permit, turn| CallSlot { slots: self.clone(), permit: Some(permit), turn: Some(turn) };
        let first_turn = self.try_turn(execution, is_exclusive);
        let mut turn = match (first_turn, self.free.clone().try_acquire_owned()) {
            (Some(turn), Ok(permit)) => return Ok(slot(permit, turn)),
            (turn, _) => turn,
        };
        let Some(_waiting) = QueuedCall::begin(self) else {
            return Err(SlotError::QueueFull(self.limits.queue_max));
        };
        let waiting = async {
            if turn.is_none() {
                turn = Some(self.wait_for_turn(execution).await);
            }
            self.free.clone().acquire_owned().await
        };
        let permit = tokio::time::timeout(self.limits.queue_timeout, waiting).await;
        match (permit, turn) {
            (Ok(Ok(permit)), Some(turn)) => Ok(slot(permit, turn)),
            (_, Some(_)) => Err(SlotError::QueueTimeout(self.limits.queue_timeout)),
            (_, None) => Err(SlotError::TurnTimeout(self.limits.queue_timeout)),
        }
    }

    /// Counts a call among those of its execution. Returns `None` if the call is exclusive and must wait: for the calls of
    /// other executions, or for those that have waited for longer.
    fn try_turn(self: &Arc<Self>, execution: ExecutionId, is_exclusive: bool) -> Option<Turn> {
        let mut turns = self.turns.lock();
        let is_free = turns.waiting.is_empty() && turns.calls.keys().all(|other| *other == execution);
        (is_free || !is_exclusive).then(|| self.begin_turn(&mut turns, execution))
    }

    fn begin_turn(self: &Arc<Self>, turns: &mut Turns, execution: ExecutionId) -> Turn {
        *turns.calls.entry(execution).or_default() += 1;
        Turn { slots: self.clone(), execution }
    }

    async fn wait_for_turn(self: &Arc<Self>, execution: ExecutionId) -> Turn {
        let waiting = WaitingTurn::begin(self);
        loop {
            let slot_freed = self.slot_freed.notified();
            {
                let mut turns = self.turns.lock();
                let is_first = turns.waiting.front() == Some(&waiting.ticket);
                if is_first && turns.calls.keys().all(|other| *other == execution) {
                    return self.begin_turn(&mut turns, execution);
                }
            }
            slot_freed.await;
        }
    }

    fn in_use(&self) -> usize {
        self.limits.calls_max - self.free.available_permits()
    }

    /// Waits until the server has been idle for the duration `limit`, that is, without a call in flight.
    pub(super) async fn wait_idle(&self, limit: Duration) {
        loop {
            let since = *self.last_used.lock();
            let slot_freed = self.slot_freed.notified();
            if self.in_use() > 0 {
                slot_freed.await;
            } else if since.elapsed() < limit {
                tokio::time::sleep(limit.saturating_sub(since.elapsed())).await;
            } else {
                return;
            }
        }
    }

    /// Waits until no call to the server is in flight.
    pub(super) async fn wait_drained(&self) {
        while self.in_use() > 0 {
            let slot_freed = self.slot_freed.notified();
            if self.in_use() > 0 {
                slot_freed.await;
            }
        }
    }

    /// Returns when a call last ended.
    pub(super) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Restarts the server's idle time, because the server is in use now. Takes no slot.
    pub(super) fn record_use(&self) {
        *self.last_used.lock() = Instant::now();
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        // Free the permit and end the turn first: the notified tasks check whether the slot is free.
        self.permit.take();
        self.turn.take();
        self.slots.record_use();
        self.slots.slot_freed.notify_waiters();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = self.slots.turns.lock();
        if let Some(count) = turns.calls.get_mut(&self.execution) {
            *count -= 1;
            if *count == 0 {
                turns.calls.remove(&self.execution);
            }
        }
        drop(turns);
        self.slots.slot_freed.notify_waiters();
    }
}

/// Guard that keeps the place of one call among those that wait for the calls of other executions. Dropping it lets the
/// next one continue.
struct WaitingTurn<'a> {
    slots: &'a CallSlots,
    ticket: u64,
}

impl<'a> WaitingTurn<'a> {
    fn begin(slots: &'a CallSlots) -> Self {
        let mut turns = slots.turns.lock();
        turns.last_ticket += 1;
        let ticket = turns.last_ticket;
        turns.waiting.push_back(ticket);
        Self { slots, ticket }
    }
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.slots.turns.lock().waiting.retain(|ticket| *ticket != self.ticket);
        self.slots.slot_freed.notify_waiters();
    }
}

/// Guard that counts one call as waiting in the queue for a slot. Dropping it removes the call from the count.
struct QueuedCall<'a>(&'a CallSlots);

impl<'a> QueuedCall<'a> {
    fn begin(slots: &'a CallSlots) -> Option<Self> {
        if slots.waiting.fetch_add(1, Ordering::Relaxed) < slots.limits.queue_max {
            return Some(Self(slots));
        }
        slots.waiting.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ExecutionId = ExecutionId(1);
    const OTHER: ExecutionId = ExecutionId(2);
    const QUEUE_TIMEOUT: Duration = Duration::from_millis(20);

    fn slots(calls_max: usize, queue_max: usize, queue_timeout: Duration) -> Arc<CallSlots> {
        CallSlots::new(ServerLimits { calls_max, queue_max, queue_timeout, ..ServerLimits::default() })
    }

    #[tokio::test]
    async fn calls_beyond_the_slots_wait_and_those_beyond_the_queue_do_not() {
        let slots = slots(1, 1, Duration::MAX);
        let first = slots.acquire(ONE, false).await.expect("a slot");
        let second = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire(ONE, false).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(slots.acquire(ONE, false).await.map(drop), Err(SlotError::QueueFull(1)));
        drop(first);
        assert_eq!(second.await.expect("a task"), Ok(()));
        assert!(slots.acquire(ONE, false).await.is_ok());
    }

    #[tokio::test]
    async fn waiting_ends_on_a_clock_of_its_own() {
        let slots = slots(1, 8, QUEUE_TIMEOUT);
        let _first = slots.acquire(ONE, false).await.expect("a slot");
        assert_eq!(slots.acquire(ONE, false).await.map(drop), Err(SlotError::QueueTimeout(QUEUE_TIMEOUT)));
        assert_eq!(slots.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_server_is_idle_only_after_its_last_call() {
        let slots = slots(2, 8, QUEUE_TIMEOUT);
        let slot = slots.acquire(ONE, false).await.expect("a slot");
        let idle = tokio::spawn({
            let slots = slots.clone();
            async move { slots.wait_idle(Duration::from_millis(1)).await }
        });
        slots.record_use();
        tokio::task::yield_now().await;
        assert!(!idle.is_finished());
        drop(slot);
        slots.wait_drained().await;
        idle.await.expect("a task");
    }

    #[tokio::test]
    async fn calls_of_one_execution_run_at_a_time_if_they_are_exclusive() {
        let slots = slots(8, 8, Duration::MAX);
        let first = slots.acquire(ONE, true).await.expect("a slot");
        let second = slots.acquire(ONE, true).await.expect("a slot");
        let other = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire(OTHER, true).await }
        });
        tokio::task::yield_now().await;
        drop(first);
        // This call came later than the one of the other execution.
        let later = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire(ONE, true).await }
        });
        tokio::task::yield_now().await;
        assert!(!other.is_finished() && !later.is_finished());
        drop(second);
        let other = other.await.expect("a task").expect("a slot");
        assert!(!later.is_finished());
        drop(other);
        later.await.expect("a task").expect("a slot");
        assert!(slots.turns.lock().calls.is_empty());
    }

    #[tokio::test]
    async fn a_turn_that_does_not_come_is_an_error_of_its_own() {
        let slots = slots(8, 8, QUEUE_TIMEOUT);
        let _first = slots.acquire(ONE, false).await.expect("a slot");
        assert_eq!(slots.acquire(OTHER, true).await.map(drop), Err(SlotError::TurnTimeout(QUEUE_TIMEOUT)));
        assert!(slots.acquire(OTHER, false).await.is_ok());
        assert!(slots.turns.lock().waiting.is_empty());
    }
}
