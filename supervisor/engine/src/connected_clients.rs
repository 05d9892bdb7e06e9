//! The AI clients that are connected to this process over its socket for fronts. Each has a `lockhouse serve` process of
//! its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::Owner;
use serde::Serialize;
use tokio::sync::watch;

/// Maximum number of connected AI clients. A further client runs an engine of its own.
/// Bound: engines and fronts.
const CLIENTS_MAX: usize = 128;
/// Maximum length of the name of a client in the list, in characters.
const NAME_CHARS_MAX: usize = 64;

/// The registry of connected AI clients. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ConnectedClients(Arc<watch::Sender<BTreeMap<Owner, ConnectedClient>>>);

/// A connected AI client, as operators see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectedClient {
    /// The process id of the client's `lockhouse serve`. 0 if the kernel does not report it.
    pub pid: u32,
    /// The name that the client reports itself. `None` until its first request.
    pub name: Option<String>,
}

/// Guard that counts a client as connected until it is dropped.
#[derive(Debug)]
pub(crate) struct ClientRegistration {
    clients: ConnectedClients,
    owner: Owner,
}

impl ConnectedClients {
    /// Registers a client. Returns `None` if there are too many.
    pub(crate) fn register(&self, owner: Owner, pid: u32) -> Option<ClientRegistration> {
        let is_added = self.0.send_if_modified(|clients| {
            let has_room = clients.len() < CLIENTS_MAX;
            if has_room {
                clients.insert(owner, ConnectedClient { pid, name: None });
            }
            has_room
        });
        is_added.then(|| ClientRegistration { clients: self.clone(), owner })
    }

    /// Records the name that a client reports.
    pub(crate) fn set_name(&self, owner: Owner, name: &str) {
        self.0.send_if_modified(|clients| {
            if let Some(client) = clients.get_mut(&owner).filter(|client| client.name.is_none()) {
                client.name = Some(name.chars().take(NAME_CHARS_MAX).collect());
            }
            // Nobody waits for a name.
            false
        });
    }

    /// Lists the connected clients in the order in which they connected.
    pub(crate) fn list(&self) -> Vec<ConnectedClient> {
        self.0.borrow().values().cloned().collect()
    }

    /// Waits until no client has been connected for this time.
    pub async fn wait_unused(&self, time: Duration) {
        let mut clients = self.0.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        loop {
            let _ = clients.wait_for(BTreeMap::is_empty).await;
            let connected = clients.wait_for(|clients| !clients.is_empty());
            if tokio::time::timeout(time, connected).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for ClientRegistration {
    fn drop(&mut self) {
        self.clients.0.send_modify(|clients| drop(clients.remove(&self.owner)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_process_is_unused_only_without_clients() {
        let clients = ConnectedClients::default();
        let connect = || clients.register(Owner::of_connection(1), 7).expect("room");
        let (unused, longer) = (Duration::from_millis(20), Duration::from_millis(60));
        let first = connect();
        let waiting = clients.wait_unused(unused);
        tokio::pin!(waiting);
        assert!(tokio::time::timeout(longer, &mut waiting).await.is_err());
        drop(first);
        let second = connect();
        assert!(tokio::time::timeout(longer, &mut waiting).await.is_err());
        drop(second);
        waiting.await;
    }

    #[test]
    fn clients_are_bounded_and_keep_their_first_name() {
        let clients = ConnectedClients::default();
        let connected: Vec<_> = (1..=CLIENTS_MAX as u64)
            .map(|number| clients.register(Owner::of_connection(number), 1))
            .collect();
        assert!(connected.iter().all(Option::is_some));
        assert!(clients.register(Owner::of_connection(1_000), 1).is_none());
        drop(connected);
        let owner = Owner::of_connection(4);
        let _client = clients.register(owner, 9);
        clients.set_name(owner, &"x".repeat(100));
        clients.set_name(owner, "another");
        assert_eq!(clients.list(), [ConnectedClient { pid: 9, name: Some("x".repeat(NAME_CHARS_MAX)) }]);
    }
}
