//! The open connections of AI clients to the Unix domain sockets of one front, and the users at their other ends.

use std::collections::HashMap;

use lockhouse_access::UnixPeer;
use lockhouse_messages::ConnectionId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The open connections of AI clients to the Unix domain sockets of one front, each with the user at its other end. Only
/// the front that serves them can use them as credentials.
#[derive(Debug, Default)]
pub(crate) struct UnixConnections {
    table: Mutex<Table>,
    /// Wakes those who wait for a connection to close.
    removed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    peers: HashMap<ConnectionId, UnixPeer>,
}

impl UnixConnections {
    /// Adds a connection that was accepted.
    pub(crate) fn add(&self, peer: UnixPeer) -> ConnectionId {
        let mut table = self.table.lock();
        table.last += 1;
        let id = ConnectionId(table.last);
        table.peers.insert(id, peer);
        id
    }

    /// Returns the user at the other end. `None` if there is no such connection, or it is closed.
    pub(crate) fn peer(&self, id: ConnectionId) -> Option<UnixPeer> {
        self.table.lock().peers.get(&id).copied()
    }

    /// Removes a connection that is closed.
    pub(crate) fn remove(&self, id: ConnectionId) {
        if self.table.lock().peers.remove(&id).is_some() {
            self.removed.notify_waiters();
        }
    }

    /// Waits until fewer connections than `max` are open.
    pub(crate) async fn wait_for_room(&self, max: usize) {
        loop {
            let removed = self.removed.notified();
            if self.table.lock().peers.len() < max {
                return;
            }
            removed.await;
        }
    }
}
