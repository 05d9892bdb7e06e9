//! A hold on a worker, and the place that it takes among those that run.

use std::time::Duration;

use lockhouse_base::principal::Owner;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::worker::Worker;

/// An exclusive hold on a worker, which ends with it.
#[derive(Debug)]
pub struct Lease {
    pub worker: Worker,
    /// Dropped after the worker: its place is free only once it is killed.
    _place: Place,
}

impl Lease {
    pub(super) fn new(worker: Worker, place: Place) -> Self {
        Self { worker, _place: place }
    }
}

/// One lease has ended.
#[derive(Debug)]
pub(super) struct Released {
    pub(super) owner: Owner,
    /// How long it was held.
    pub(super) held: Duration,
}

/// Tells the pool when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    owner: Owner,
    since: Instant,
    /// Room for the message, so that it can be sent without waiting. `None` once it is sent.
    release: Option<mpsc::OwnedPermit<Released>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            release.send(Released { owner: self.owner, held: self.since.elapsed() });
        }
    }
}

/// All places of a pool.
#[derive(Debug)]
pub(super) struct Places(mpsc::Sender<Released>);

impl Places {
    pub(super) fn new(count: usize) -> (Self, mpsc::Receiver<Released>) {
        let (released, inbox) = mpsc::channel(count);
        (Self(released), inbox)
    }

    /// One of them. The channel has room for a message of each, and a place counts as taken until its message is read: a
    /// pool that never has more leases than places always finds room. If it did not, the place would be lost, which
    /// is safe.
    pub(super) fn take(&self, owner: Owner) -> Place {
        let release = self.0.clone().try_reserve_owned().ok();
        debug_assert!(release.is_some(), "there are more leases than places");
        Place { owner, since: Instant::now(), release }
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_base::principal::Principal;

    use super::*;

    #[test]
    fn each_place_is_given_back_without_a_reader_and_counts_as_free_once_it_is_read() {
        let owner = Principal::of_connection().owner();
        let (places, mut released) = Places::new(2);
        for _ in 0..3 {
            drop([places.take(owner), places.take(owner)]);
            assert!(places.0.clone().try_reserve_owned().is_err(), "both messages wait to be read");
            for _ in 0..2 {
                assert_eq!(released.try_recv().expect("a message").owner, owner);
            }
        }
    }
}
