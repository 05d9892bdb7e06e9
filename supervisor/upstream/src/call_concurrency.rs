//! Limits how many calls to one upstream server run concurrently, and queues further calls. The time in the queue does
//! not count against a call's timeout.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::definition::ServerLimits;

/// The slots for concurrent calls to one upstream server, and the queue of calls that wait for a slot.
#[derive(Debug)]
pub(super) struct CallSlots {
    free: Arc<Semaphore>,
    limits: ServerLimits,
    waiting: AtomicUsize,
    last_used: Mutex<Instant>,
    /// Notified whenever a call ends and its slot becomes free.
    slot_freed: Notify,
}

/// A reserved slot, which permits one call to be sent to the upstream server. Dropping it frees the slot.
#[derive(Debug)]
pub struct CallSlot {
    slots: Arc<CallSlots>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Why a call to an upstream server was not admitted by the limit on concurrent calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SlotError {
    /// The queue already contains the configured maximum number of calls. Contains this maximum.
    QueueFull(usize),
    /// The call got no slot within the configured queue timeout. Contains this timeout.
    QueueTimeout(Duration),
}

impl CallSlots {
    pub(super) fn new(limits: ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            free: Arc::new(Semaphore::new(limits.calls_max)),
            limits,
            waiting: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            slot_freed: Notify::new(),
        })
    }

    /// Waits for a free slot, in first-in, first-out order. Returns an error if the queue is full or the queue timeout
    /// passes.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<CallSlot, SlotError> {
        let slot = |permit| CallSlot { slots: self.clone(), permit: Some(permit) };
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(slot(permit));
        }
        let Some(_waiting) = QueuedCall::begin(self) else {
            return Err(SlotError::QueueFull(self.limits.queue_max));
        };
        match tokio::time::timeout(self.limits.queue_timeout, self.free.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(slot(permit)),
            _ => Err(SlotError::QueueTimeout(self.limits.queue_timeout)),
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

    /// Restarts the server's idle time, because the server is in use now. Takes no slot.
    pub(super) fn record_use(&self) {
        *self.last_used.lock() = Instant::now();
    }
}

impl Drop for CallSlot {
    fn drop(&mut self) {
        // Free the permit first: the notified tasks check whether the slot is free.
        self.permit.take();
        self.slots.record_use();
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

    const QUEUE_TIMEOUT: Duration = Duration::from_millis(20);

    fn slots(calls_max: usize, queue_max: usize, queue_timeout: Duration) -> Arc<CallSlots> {
        CallSlots::new(ServerLimits { calls_max, queue_max, queue_timeout, ..ServerLimits::default() })
    }

    #[tokio::test]
    async fn calls_beyond_the_slots_wait_and_those_beyond_the_queue_do_not() {
        let slots = slots(1, 1, Duration::MAX);
        let first = slots.acquire().await.expect("a slot");
        let second = tokio::spawn({
            let slots = slots.clone();
            async move { slots.acquire().await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(slots.acquire().await.map(drop), Err(SlotError::QueueFull(1)));
        drop(first);
        assert_eq!(second.await.expect("a task"), Ok(()));
        assert!(slots.acquire().await.is_ok());
    }

    #[tokio::test]
    async fn waiting_ends_on_a_clock_of_its_own() {
        let slots = slots(1, 8, QUEUE_TIMEOUT);
        let _first = slots.acquire().await.expect("a slot");
        assert_eq!(slots.acquire().await.map(drop), Err(SlotError::QueueTimeout(QUEUE_TIMEOUT)));
        assert_eq!(slots.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_server_is_idle_only_after_its_last_call() {
        let slots = slots(2, 8, QUEUE_TIMEOUT);
        let slot = slots.acquire().await.expect("a slot");
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
}
