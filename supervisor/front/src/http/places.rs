//! Places for large bodies: so many at one time, of which one client gets a quarter.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::principal::Owner;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of all clients.
#[derive(Debug)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    /// Of one client.
    share: usize,
    of_client: Mutex<HashMap<Owner, Arc<Semaphore>>>,
}

/// One place, until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _of_client: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(places: usize) -> Self {
        let places = places.max(1);
        let all = Arc::new(Semaphore::new(places));
        Self { all, share: places.div_ceil(4), of_client: Mutex::default() }
    }

    /// The next place, in the order in which clients asked. Who has its share waits for itself and keeps nobody else waiting.
    pub(super) async fn take(&self, owner: Owner) -> Option<Place> {
        let of_client = self.of_client(owner).acquire_owned().await.ok()?;
        let of_all = self.all.clone().acquire_owned().await.ok()?;
        Some(Place { _of_client: of_client, _of_all: of_all })
    }

    fn of_client(&self, owner: Owner) -> Arc<Semaphore> {
        let mut clients = self.of_client.lock();
        // Whoever has a place, or waits for one, has a copy.
        clients.retain(|_, places| Arc::strong_count(places) > 1);
        clients.entry(owner).or_insert_with(|| Arc::new(Semaphore::new(self.share))).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_client_gets_a_quarter_and_another_does_not_wait_for_it() {
        let places = Places::new(8);
        let [one, other] = ["one", "other"].map(Owner::of_name);
        let first = places.take(one).await.expect("a place");
        let _second = places.take(one).await.expect("a place");
        let mut third = Box::pin(places.take(one));
        assert!((&mut third).now_or_never().is_none(), "it has its share");
        assert!(places.take(other).now_or_never().is_some(), "another client has its own");
        drop(first);
        assert!(third.now_or_never().is_some(), "a place came back");
    }

    #[tokio::test]
    async fn there_are_no_more_places_than_that_and_clients_without_any_are_forgotten() {
        let places = Places::new(2);
        let [one, two, three] = ["one", "two", "three"].map(Owner::of_name);
        let held = (places.take(one).await, places.take(two).await);
        assert!(places.take(three).now_or_never().is_none());
        drop(held);
        assert!(places.take(three).now_or_never().is_some());
        assert_eq!(places.of_client.lock().len(), 1);
    }
}
