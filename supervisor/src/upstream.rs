//! The servers behind us: one task holds each connection, for as long as we run.
//!
//! A call needs a [`PermittedCall`], which only the policy's decision makes: there is no other way in.

mod connection;
mod fault;
mod link;
mod listing;
mod process;
mod request;
mod result;
mod secrets;
mod transport;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_protocol::ServerName;

pub(crate) use connection::{Connection, Offer, State};

/// Set for every upstream server: a Lockhouse among them must not start the next.
pub(crate) const NESTED: &str = "LOCKHOUSE_UPSTREAM";

/// How one stdio upstream server is started.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerCommand {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) directory: Option<std::path::PathBuf>,
    /// From the start of the process to its list of tools.
    pub(crate) start_timeout: Duration,
    /// One call.
    pub(crate) call_timeout: Duration,
    /// One line of JSON, bytes.
    pub(crate) line_bytes_max: usize,
}

/// All connections, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upstreams(Arc<BTreeMap<ServerName, Connection>>);

impl Upstreams {
    /// Starts to connect to all of them at once. Nobody waits here: a server that fails keeps its own callers waiting
    /// and no one else's.
    pub(crate) fn connect(servers: BTreeMap<ServerName, ServerCommand>) -> Self {
        let connect = |(name, command): (ServerName, ServerCommand)| {
            let connection = Connection::open(name.clone(), command);
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
