//! Lets each client use the processor for few of its requests at one time. However many requests a client sends at once, those of
//! others wait for these few.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of requests of one client that are authenticated, or answered without a run, at one time. Further ones wait.
/// Bound: AI clients.
const TURNS: usize = 2;
/// Number of clients in memory from which on those without a request are removed.
const CLIENTS_MAX: usize = 4_096;

/// The turns of all clients.
#[derive(Debug)]
pub(crate) struct ClientTurns {
    /// Number of turns that a client may have at one time.
    at_once: usize,
    clients: Mutex<HashMap<u64, Arc<Semaphore>>>,
    hasher: RandomState,
}

/// The turn of a request, until it is dropped.
#[derive(Debug)]
pub(crate) struct ClientTurn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for ClientTurns {
    fn default() -> Self {
        Self::new(TURNS)
    }
}

impl ClientTurns {
    /// Gives each client this number of turns at one time.
    pub(crate) fn new(at_once: usize) -> Self {
        Self { at_once, clients: Mutex::default(), hasher: RandomState::new() }
    }

    /// Waits for a turn of the client with this key, such as its token.
    pub(crate) async fn take(&self, client: impl Hash) -> ClientTurn {
        let turns = self.of(client);
        // No semaphore is ever closed.
        ClientTurn { _permit: turns.acquire_owned().await.ok() }
    }

    /// Returns the turns of the client with this key, which are remembered at least as long as the caller has them.
    pub(crate) fn of(&self, client: impl Hash) -> Arc<Semaphore> {
        let key = self.hasher.hash_one(client);
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_MAX && !clients.contains_key(&key) {
            // A turn that is taken or waited for refers to it.
            clients.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        clients.entry(key).or_insert_with(|| Arc::new(Semaphore::new(self.at_once))).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_client_has_few_turns_and_others_do_not_wait_for_it() {
        let turns = ClientTurns::default();
        let mut taken = Vec::new();
        for _ in 0..TURNS {
            taken.push(turns.take("one").await);
        }
        let mut waiting = Box::pin(turns.take("one"));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(turns.take("other").now_or_never().is_some());
        taken.pop();
        assert!(waiting.now_or_never().is_some());
    }

    #[tokio::test]
    async fn clients_without_a_request_are_forgotten() {
        let turns = ClientTurns::default();
        let held = turns.take("held").await;
        for client in 0..2 * CLIENTS_MAX {
            turns.take(client).await;
        }
        assert!(turns.clients.lock().len() <= CLIENTS_MAX);
        let second = turns.take("held").await;
        assert!(turns.take("held").now_or_never().is_none(), "what is held still counts");
        drop((held, second));
    }
}
