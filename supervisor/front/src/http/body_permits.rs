//! Permits for receiving large request bodies. One client may hold at most a quarter of the permits.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_messages::Owner;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits for receiving large request bodies, for all clients together.
#[derive(Debug)]
pub(super) struct BodyPermits {
    total: Arc<Semaphore>,
    /// Maximum number of permits that one client may hold.
    share: usize,
    by_client: Mutex<HashMap<Owner, Arc<Semaphore>>>,
}

/// The permit for receiving one large request body. Dropping it makes the permit free again.
#[derive(Debug)]
pub(super) struct BodyPermit {
    _client_permit: OwnedSemaphorePermit,
    _total_permit: OwnedSemaphorePermit,
}

impl BodyPermits {
    pub(super) fn new(permits: usize) -> Self {
        let permits = permits.max(1);
        let total = Arc::new(Semaphore::new(permits));
        Self { total, share: permits.div_ceil(4), by_client: Mutex::default() }
    }

    /// Waits for a permit. A client that holds its maximum waits without delaying other clients. All other waiting
    /// requests get permits in the order of their arrival. `None` does not occur in practice, because the semaphores
    /// are never closed.
    pub(super) async fn acquire(&self, owner: Owner) -> Option<BodyPermit> {
        let client_permit = self.client_semaphore(owner).acquire_owned().await.ok()?;
        let total_permit = self.total.clone().acquire_owned().await.ok()?;
        Some(BodyPermit { _client_permit: client_permit, _total_permit: total_permit })
    }

    fn client_semaphore(&self, owner: Owner) -> Arc<Semaphore> {
        let mut clients = self.by_client.lock();
        // Clients that hold a permit or wait for one have a clone of their semaphore.
        clients.retain(|_, permits| Arc::strong_count(permits) > 1);
        clients.entry(owner).or_insert_with(|| Arc::new(Semaphore::new(self.share))).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_client_gets_a_quarter_of_the_body_permits() {
        let permits = BodyPermits::new(8);
        let [one, other] = [1, 2].map(Owner::of_connection);
        let first = permits.acquire(one).await.expect("a place");
        let _second = permits.acquire(one).await.expect("a place");
        let mut third = Box::pin(permits.acquire(one));
        assert!((&mut third).now_or_never().is_none(), "it has its share");
        assert!(permits.acquire(other).now_or_never().is_some(), "another client has its own");
        drop(first);
        assert!(third.now_or_never().is_some(), "a place came back");
    }

    #[tokio::test]
    async fn body_permits_are_bounded_and_idle_clients_are_removed() {
        let permits = BodyPermits::new(2);
        let [one, two, three] = [1, 2, 3].map(Owner::of_connection);
        let held = (permits.acquire(one).await, permits.acquire(two).await);
        assert!(permits.acquire(three).now_or_never().is_none());
        drop(held);
        assert!(permits.acquire(three).now_or_never().is_some());
        assert_eq!(permits.by_client.lock().len(), 1);
    }
}
