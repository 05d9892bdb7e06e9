//! Leases, and the slots that limit how many leases exist at one time.

use std::time::Duration;

use lockhouse_messages::Owner;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::worker::Worker;

/// The exclusive hold of one execution on a worker. Dropping the lease kills the worker.
#[derive(Debug)]
pub struct Lease {
    pub worker: Worker,
    /// The slot that the lease occupies. As the last field it is dropped last, so the slot becomes free only after the
    /// worker was killed.
    _slot: LeaseSlot,
}

impl Lease {
    pub(super) fn new(worker: Worker, slot: LeaseSlot) -> Self {
        Self { worker, _slot: slot }
    }
}

/// The message that a lease was dropped, for the task that owns the pool.
#[derive(Debug)]
pub(super) struct ReleasedLease {
    pub(super) owner: Owner,
    /// The time from the creation of the lease to its drop.
    pub(super) held: Duration,
}

/// One of the slots that limit the number of leased workers. Dropping the slot sends a [`ReleasedLease`] to
/// the task that owns the pool.
#[derive(Debug)]
pub(super) struct LeaseSlot {
    owner: Owner,
    since: Instant,
    /// A reserved place in the channel for the [`ReleasedLease`] message, so that `drop` never waits. `None` after
    /// the message was sent, or if the channel had no place left.
    release: Option<mpsc::OwnedPermit<ReleasedLease>>,
}

impl Drop for LeaseSlot {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release.send(ReleasedLease { owner: self.owner, held: self.since.elapsed() });
        }
    }
}

/// The lease slots of a pool: the channel for [`ReleasedLease`] messages, whose capacity is the number of slots.
#[derive(Debug)]
pub(super) struct LeaseSlots(mpsc::Sender<ReleasedLease>);

impl LeaseSlots {
    pub(super) fn new(count: usize) -> (Self, mpsc::Receiver<ReleasedLease>) {
        let (released, inbox) = mpsc::channel(count);
        (Self(released), inbox)
    }

    /// Acquires a slot for a new lease. The slot is in use until the pool's task has received the [`ReleasedLease`]
    /// message. The channel has one place for each slot, and the pool never leases more workers than there are slots,
    /// so a place is always free. Without a free place, the release could not be reported, and the pool would count
    /// one lease too many: it would run fewer executions, never too many.
    pub(super) fn acquire(&self, owner: Owner) -> LeaseSlot {
        let release = self.0.clone().try_reserve_owned().ok();
        debug_assert!(release.is_some(), "there are more leases than slots");
        LeaseSlot { owner, since: Instant::now(), release }
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_base::principal::Principal;

    use super::*;

    #[test]
    fn a_slot_is_released_without_a_reader_and_free_once_the_notice_is_read() {
        let owner = Principal::for_new_connection().owner();
        let (slots, mut released) = LeaseSlots::new(2);
        for _ in 0..3 {
            drop([slots.acquire(owner), slots.acquire(owner)]);
            assert!(slots.0.clone().try_reserve_owned().is_err(), "both messages wait to be read");
            for _ in 0..2 {
                assert_eq!(released.try_recv().expect("a message").owner, owner);
            }
        }
    }
}
