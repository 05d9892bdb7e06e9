//! Leases of workers, and the slots that limit how many are held at one time.

use std::time::Duration;

use lockhouse_base::principal::Owner;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::worker::Worker;

/// Exclusive use of a worker, which is killed when the lease is dropped.
#[derive(Debug)]
pub struct Lease {
    pub worker: Worker,
    /// The slot that the lease occupies. It is dropped after the worker, so it becomes free only when the worker is
    /// killed.
    _slot: LeaseSlot,
}

impl Lease {
    pub(super) fn new(worker: Worker, slot: LeaseSlot) -> Self {
        Self { worker, _slot: slot }
    }
}

/// The notice to the pool that a lease of a worker was dropped.
#[derive(Debug)]
pub(super) struct ReleasedLease {
    pub(super) owner: Owner,
    /// How long the lease was held.
    pub(super) held: Duration,
}

/// The slot that a lease occupies. Notifies the pool when dropped.
#[derive(Debug)]
pub(super) struct LeaseSlot {
    owner: Owner,
    since: Instant,
    /// Reserved capacity for the notice, so that `drop` never waits; `None` once it is sent.
    release: Option<mpsc::OwnedPermit<ReleasedLease>>,
}

impl Drop for LeaseSlot {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release.send(ReleasedLease { owner: self.owner, held: self.since.elapsed() });
        }
    }
}

/// All lease slots of a pool.
#[derive(Debug)]
pub(super) struct LeaseSlots(mpsc::Sender<ReleasedLease>);

impl LeaseSlots {
    pub(super) fn new(count: usize) -> (Self, mpsc::Receiver<ReleasedLease>) {
        let (released, inbox) = mpsc::channel(count);
        (Self(released), inbox)
    }

    /// Acquires a slot. The channel has capacity for one notice per slot, and a slot counts as used until its notice
    /// is read; so a pool with no more leases than slots always finds capacity. Otherwise the slot would be lost,
    /// which is safe.
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
