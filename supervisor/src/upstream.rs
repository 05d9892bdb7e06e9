//! The servers behind us: one task holds each connection, for as long as we run.
//!
//! A call needs a [`PermittedCall`], which only the policy's decision makes: there is no other way in.

mod callers;
mod calls;
mod connection;
mod definition;
mod fault;
mod hold;
mod host;
mod http;
mod input;
mod link;
mod listing;
mod lists;
mod process;
mod request;
mod result;
mod secrets;
mod status;
mod transport;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_protocol::ServerName;

pub(crate) use callers::Caller;
pub(crate) use connection::{Connection, State};
pub(crate) use definition::{
    Authorization, Confinement, HttpEndpoint, OAuthClient, Reach, ServerCommand, ServerDefinition,
    ServerLimits, Start, ToolSelection,
};
pub(crate) use status::Status;

/// Set for every upstream server: a Lockhouse among them must not start the next.
pub(crate) const NESTED: &str = "LOCKHOUSE_UPSTREAM";

/// All connections, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upstreams(Arc<BTreeMap<ServerName, Connection>>);

impl Upstreams {
    /// Starts to connect to all of them at once. Nobody waits here: a server that fails keeps its own callers waiting
    /// and no one else's.
    pub(crate) fn connect(servers: BTreeMap<ServerName, ServerDefinition>) -> Self {
        let connect = |(name, definition): (ServerName, ServerDefinition)| {
            let connection = Connection::open(name.clone(), definition);
            (name, connection)
        };
        Self(Arc::new(servers.into_iter().map(connect).collect()))
    }

    pub(crate) fn get(&self, name: &ServerName) -> Option<&Connection> {
        self.0.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ServerName, &Connection)> {
        self.0.iter()
    }

    /// Waits until each server is connected or has failed, at most for its start timeout.
    pub(crate) async fn settle(&self) {
        futures_util::future::join_all(self.0.values().map(Connection::offer)).await;
    }

    /// Ends every server's process, and waits for that.
    pub(crate) async fn close(&self) {
        futures_util::future::join_all(self.0.values().map(Connection::close)).await;
    }
}
