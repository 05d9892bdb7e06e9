//! Events in the lives of upstream servers: their starts and ends. One observer of the process receives them, for its
//! records.

use std::sync::{Arc, OnceLock};

use lockhouse_protocol::ServerName;

/// What happened to an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEventKind {
    Started,
    /// It could not be started.
    Failed,
    /// Its connection ended by itself.
    Lost,
    /// Lockhouse has ended it.
    Stopped,
}

/// An event in the life of an upstream server.
#[derive(Clone, Debug)]
pub struct ServerEvent {
    pub server: ServerName,
    pub kind: ServerEventKind,
    /// Why. Without any text of the server.
    pub reason: Option<String>,
    /// The exit status of its process, if that exited by itself.
    pub exit_status: Option<i32>,
}

type Observer = Box<dyn Fn(ServerEvent) + Send + Sync>;

/// Passes the events of all upstream servers to the observer. Clones share the observer.
#[derive(Clone, Default)]
pub(super) struct ServerEvents(Arc<OnceLock<Observer>>);

impl ServerEvents {
    /// Sets the observer. Only the first one receives events.
    pub(super) fn observe(&self, observer: Observer) {
        let _ = self.0.set(observer);
    }

    pub(super) fn send(&self, event: ServerEvent) {
        if let Some(observer) = self.0.get() {
            observer(event);
        }
    }
}

impl std::fmt::Debug for ServerEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ServerEvents").field(&self.0.get().is_some()).finish()
    }
}
