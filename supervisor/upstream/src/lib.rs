//! The servers behind us: one task holds each connection, for as long as we run.
//!
//! A call needs a [`PermittedCall`], which only the policy's decision makes: there is no other way in.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

pub mod ai_client;
mod auth;
mod broken;
mod cache;
mod call;
mod callers;
mod calls;
mod confine;
mod connection;
mod definition;
mod elicitation;
mod entries;
mod fault;
mod hold;
mod host;
mod http;
mod http_fault;
mod ids;
mod inbound;
mod input;
mod line;
mod link;
mod listing;
mod lists;
mod log;
mod login;
mod notices;
mod pins;
mod places;
mod probe;
mod process;
mod request;
mod result;
mod signals;
mod slots;
mod start;
mod state;
mod status;
mod subscriptions;
mod traffic;
mod transport;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_base::secrets::Secrets;
use lockhouse_protocol::ServerName;
use tokio::sync::Semaphore;

pub use cache::remembered;
pub use callers::Caller;
pub use confine::become_confined;
pub use connection::Connection;
pub use definition::{
    Authorization, Confinement, Decode, Directly, Exposure, HttpEndpoint, OAuthClient, PREFIX_CHARS_MAX,
    Reach, Referenced, ServerCommand, ServerDefinition, ServerLimits, Start, ToolSelection,
};
pub use login::{Login, LoginError, log_out};
pub use notices::{Notice, Notices};
pub use pins::{Change, Pins, Review};
pub use places::Places;
pub use slots::Slot;
pub use state::{Offer, State};
pub use status::Ending;
pub use wire::{Failed, Verb, Wire};

/// Set for every upstream server: a Lockhouse among them must not start the next.
pub const NESTED: &str = "LOCKHOUSE_UPSTREAM";

/// Servers that may start at one time. Dozens that start together each take so long that none makes it in time.
fn starts_at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * cores).max(8)
}

/// All connections, by name.
#[derive(Clone, Debug, Default)]
pub struct Upstreams {
    servers: Arc<BTreeMap<ServerName, Upstream>>,
    notices: Notices,
}

#[derive(Clone, Debug)]
struct Upstream {
    definition: ServerDefinition,
    connection: Connection,
}

impl Upstreams {
    /// Starts to connect to all of them at once. Nobody waits here: a server that fails keeps its own callers waiting
    /// and no one else's.
    pub fn connect(servers: BTreeMap<ServerName, ServerDefinition>, places: &Places) -> Self {
        Self::default().succeeded_by(servers, places).0
    }

    /// Connections to other servers. One that is configured as it was keeps the connection that it has; connections that are
    /// not needed any more come back too, still open.
    pub fn succeeded_by(
        &self,
        servers: BTreeMap<ServerName, ServerDefinition>,
        places: &Places,
    ) -> (Self, Self) {
        let starts = Arc::new(Semaphore::new(starts_at_once()));
        let notices = self.notices.clone();
        let mut left_over = (*self.servers).clone();
        let mut connect = |(name, definition): (ServerName, ServerDefinition)| {
            let as_it_was =
                left_over.get(&name).is_some_and(|upstream| upstream.definition.is_like(&definition));
            let kept = if as_it_was { left_over.remove(&name) } else { None };
            let upstream = kept.unwrap_or_else(|| Upstream {
                connection: Connection::open(
                    name.clone(),
                    definition.clone(),
                    places,
                    starts.clone(),
                    &notices,
                ),
                definition,
            });
            (name, upstream)
        };
        let connected = servers.into_iter().map(&mut connect).collect();
        let of = |servers: BTreeMap<_, _>| Self { servers: Arc::new(servers), notices: notices.clone() };
        (of(connected), of(left_over))
    }

    pub fn get(&self, name: &ServerName) -> Option<&Connection> {
        self.servers.get(name).map(|upstream| &upstream.connection)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, &Connection)> {
        self.servers.iter().map(|(name, upstream)| (name, &upstream.connection))
    }

    /// Where changes of directly exposed servers are told, of these and of whatever succeeds them.
    pub fn notices(&self) -> &Notices {
        &self.notices
    }

    /// What the configuration of any of them says must not be seen.
    pub fn secrets(&self) -> Secrets {
        Secrets::together(self.servers.values().map(|upstream| &upstream.connection.secrets))
    }

    /// How many servers there are.
    pub fn count(&self) -> usize {
        self.servers.len()
    }

    /// Waits until each server is connected or has failed, at most for its start timeout.
    pub async fn settle(&self) {
        futures_util::future::join_all(self.iter().map(|(_, connection)| connection.offer())).await;
    }

    /// Ends every server's process, and waits for that.
    pub async fn close(&self) {
        futures_util::future::join_all(self.iter().map(|(_, connection)| connection.close())).await;
    }

    pub fn is_closed(&self) -> bool {
        self.iter().all(|(_, connection)| connection.is_closed())
    }
}
