//! The instances of a server with `share = false`: one for each owner that calls it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_messages::Owner;
use lockhouse_protocol::{Failure, FailureCode, ServerName};
use parking_lot::Mutex;

use super::connection::Connection;
use super::connection_setup::ConnectionSetup;
use super::connection_state::ConnectionState;

/// Maximum number of instances of one server, in addition to the first one.
const INSTANCES_MAX: usize = 64;
/// Time without a call after which an instance is stopped, if the server has no `idle_stop_seconds` of its own.
const IDLE_STOP: Duration = Duration::from_secs(600);

/// The connections to one server that must not be shared. The first owner that calls the server gets the connection by
/// which the server's tools are listed, every other owner a connection of its own.
#[derive(Debug, Default)]
pub(super) struct Instances(Mutex<Owners>);

#[derive(Debug, Default)]
struct Owners {
    first: Option<Owner>,
    others: BTreeMap<Owner, Arc<Connection>>,
}

impl Instances {
    /// Returns the connection of an owner; `None` for the first owner.
    ///
    /// # Errors
    /// Returns an error if too many owners have an instance whose process runs.
    pub(super) fn of(
        &self,
        owner: Owner,
        setup: &ConnectionSetup,
    ) -> Result<Option<Arc<Connection>>, Failure> {
        let Owners { first, others } = &mut *self.0.lock();
        if *first.get_or_insert(owner) == owner {
            return Ok(None);
        }
        if let Some(connection) = others.get(&owner) {
            return Ok(Some(connection.clone()));
        }
        if others.len() >= INSTANCES_MAX {
            let idle = others.iter().find(|(_, other)| matches!(other.state(), ConnectionState::Idle));
            let idle = idle.map(|(owner, _)| *owner).ok_or_else(|| too_many(&setup.name))?;
            if let Some(unused) = others.remove(&idle) {
                tokio::spawn(async move { unused.close().await });
            }
        }
        let connection = Arc::new(open_on_demand(setup));
        others.insert(owner, connection.clone());
        Ok(Some(connection))
    }

    pub(super) fn others(&self) -> Vec<Arc<Connection>> {
        self.0.lock().others.values().cloned().collect()
    }
}

/// Opens a connection that starts its server when it is first called, and stops it when it is idle.
fn open_on_demand(setup: &ConnectionSetup) -> Connection {
    let mut setup = setup.clone();
    let start = &mut setup.definition.start;
    (start.lazy, start.idle_stop) = (true, start.idle_stop.or(Some(IDLE_STOP)));
    Connection::open(&setup)
}

fn too_many(name: &ServerName) -> Failure {
    let message = format!(
        "server {name} is not shared by clients (share = false), and {INSTANCES_MAX} other clients use it; retry later"
    );
    let failure = Failure::new(FailureCode::UpstreamUnavailable, message);
    Failure { server: Some(name.to_string()), retryable: true, ..failure }
}
