//! An open connection of an AI client to a Unix domain socket, whose number is a credential.

use std::sync::Arc;

use lockhouse_messages::{ConnectionId, ToEngine};

use crate::EngineClient;
use crate::engine_client::EngineClientInner;

/// An open connection of an AI client to a Unix domain socket. When this value is dropped, the engine learns that the
/// connection is closed.
pub struct OpenConnection {
    id: ConnectionId,
    engine: Arc<EngineClientInner>,
}

impl OpenConnection {
    pub fn id(&self) -> ConnectionId {
        self.id
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.engine.notify(ToEngine::ConnectionClosed(self.id));
    }
}

impl EngineClient {
    /// Takes over a connection that the engine has accepted, and passed to the front under this number.
    pub fn adopt(&self, id: ConnectionId) -> OpenConnection {
        OpenConnection { id, engine: self.shared().clone() }
    }
}
