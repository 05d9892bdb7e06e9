//! How many calls of one server run at a time. The others wait on a clock of their own, so that waiting does not eat the
//! time of a call.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::definition::ServerLimits;

/// The slots of one server.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    limits: ServerLimits,
    waiting: AtomicUsize,
    last_used: Mutex<Instant>,
    /// Told whenever a slot becomes free.
    freed: Notify,
}

/// The right to one call at a time.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Why there is no slot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Busy {
    /// So many calls wait already.
    QueueFull(usize),
    /// None became free in so long.
    TooLate(Duration),
}

impl Slots {
    pub(super) fn new(limits: ServerLimits) -> Arc<Self> {
        Arc::new(Self {
            free: Arc::new(Semaphore::new(limits.calls_max)),
            limits,
            waiting: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            freed: Notify::new(),
        })
    }

    /// In the order in which they come.
    pub(super) async fn enter(self: &Arc<Self>) -> Result<Slot, Busy> {
        let slot = |permit| Slot { slots: self.clone(), permit: Some(permit) };
        if let Ok(permit) = self.free.clone().try_acquire_owned() {
            return Ok(slot(permit));
        }
        let Some(_waiting) = Waiting::begin(self) else {
            return Err(Busy::QueueFull(self.limits.queue_max));
        };
        match tokio::time::timeout(self.limits.queue_timeout, self.free.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(slot(permit)),
            _ => Err(Busy::TooLate(self.limits.queue_timeout)),
        }
    }

    fn in_use(&self) -> usize {
        self.limits.calls_max - self.free.available_permits()
    }

    /// Ends once nothing has been asked of the server for so long.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let since = *self.last_used.lock();
            let freed = self.freed.notified();
            if self.in_use() > 0 {
                freed.await;
            } else if since.elapsed() < limit {
                tokio::time::sleep(limit.saturating_sub(since.elapsed())).await;
            } else {
                return;
            }
        }
    }

    /// Ends once no call runs.
    pub(super) async fn drained(&self) {
        while self.in_use() > 0 {
            let freed = self.freed.notified();
            if self.in_use() > 0 {
                freed.await;
            }
        }
    }

    /// Someone has asked for something that takes no slot.
    pub(super) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // First of all: who is told looks whether it is free.
        self.permit.take();
        self.slots.touch();
        self.slots.freed.notify_waiters();
    }
}

/// Counts one that waits, however it ends.
struct Waiting<'a>(&'a Slots);

impl<'a> Waiting<'a> {
    fn begin(slots: &'a Slots) -> Option<Self> {
        if slots.waiting.fetch_add(1, Ordering::Relaxed) < slots.limits.queue_max {
            return Some(Self(slots));
        }
        slots.waiting.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE_TIMEOUT: Duration = Duration::from_millis(20);

    fn slots(calls_max: usize, queue_max: usize, queue_timeout: Duration) -> Arc<Slots> {
        Slots::new(ServerLimits { calls_max, queue_max, queue_timeout, ..ServerLimits::default() })
    }

    #[tokio::test]
    async fn calls_beyond_the_slots_wait_and_those_beyond_the_queue_do_not() {
        let slots = slots(1, 1, Duration::MAX);
        let first = slots.enter().await.expect("a slot");
        let second = tokio::spawn({
            let slots = slots.clone();
            async move { slots.enter().await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert_eq!(slots.enter().await.map(drop), Err(Busy::QueueFull(1)));
        drop(first);
        assert_eq!(second.await.expect("a task"), Ok(()));
        assert!(slots.enter().await.is_ok());
    }

    #[tokio::test]
    async fn waiting_ends_on_a_clock_of_its_own() {
        let slots = slots(1, 8, QUEUE_TIMEOUT);
        let _first = slots.enter().await.expect("a slot");
        assert_eq!(slots.enter().await.map(drop), Err(Busy::TooLate(QUEUE_TIMEOUT)));
        assert_eq!(slots.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_server_is_idle_only_after_its_last_call() {
        let slots = slots(2, 8, QUEUE_TIMEOUT);
        let slot = slots.enter().await.expect("a slot");
        let idle = tokio::spawn({
            let slots = slots.clone();
            async move { slots.idle_for(Duration::from_millis(1)).await }
        });
        slots.touch();
        tokio::task::yield_now().await;
        assert!(!idle.is_finished());
        drop(slot);
        slots.drained().await;
        idle.await.expect("a task");
    }
}
