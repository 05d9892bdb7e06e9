//! The instances of a server with `share = false`: one for each owner that calls it. Those of a server whose users have credentials
//! of their own: one for each user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_messages::Owner;
use lockhouse_protocol::{Failure, FailureCode};
use parking_lot::Mutex;

use super::auth::secret_file::FileVersion;
use super::connection::Connection;
use super::connection_setup::ConnectionSetup;
use super::connection_state::ConnectionState;
use super::definition::ServerDefinition;

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
    others: BTreeMap<Owner, Instance>,
}

#[derive(Debug)]
struct Instance {
    connection: Arc<Connection>,
    /// That of the secret with which it was opened.
    version: Option<FileVersion>,
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
        let mut owners = self.0.lock();
        if *owners.first.get_or_insert(owner) == owner {
            return Ok(None);
        }
        match owners.others.get(&owner) {
            Some(instance) => Ok(Some(instance.connection.clone())),
            None => owners.open(owner, None, setup).map(Some),
        }
    }

    /// Returns the connection of a user, with the user's own credential.
    ///
    /// # Errors
    /// Returns an error if the user has no credential, or if too many users have an instance with calls.
    pub(super) fn of_user(&self, user: Owner, setup: &ConnectionSetup) -> Result<Arc<Connection>, Failure> {
        let mut owners = self.0.lock();
        // Looked up for each call: the user may have logged out meanwhile, in another process.
        let present = setup.present_credential(user).inspect_err(|_| owners.close(user))?;
        let version = present.version;
        if let Some(instance) = owners.others.get(&user).filter(|instance| instance.version == version) {
            return Ok(instance.connection.clone());
        }
        owners.close(user);
        owners.open(user, version, &setup.with_credential(present)?)
    }

    /// Returns how many instances there are besides that of the first owner.
    pub(super) fn count(&self) -> usize {
        self.0.lock().others.len()
    }

    pub(super) fn has(&self, owner: Owner) -> bool {
        self.0.lock().others.contains_key(&owner)
    }

    /// Returns the owner of the instance without calls that has been so for longest, and when its last call ended.
    pub(super) fn longest_unused(&self, definition: &ServerDefinition) -> Option<(Owner, Instant)> {
        self.0.lock().longest_unused(definition)
    }

    pub(super) fn close(&self, owner: Owner) {
        self.0.lock().close(owner);
    }

    /// Closes the instance of an owner, unless a call has begun on it meanwhile.
    pub(super) fn close_unused(&self, owner: Owner) {
        let mut owners = self.0.lock();
        if owners.others.get(&owner).is_some_and(|instance| Arc::strong_count(&instance.connection) == 1) {
            owners.close(owner);
        }
    }

    pub(super) fn others(&self) -> Vec<Arc<Connection>> {
        self.0.lock().others.values().map(|instance| instance.connection.clone()).collect()
    }
}

impl Owners {
    /// Opens the connection of an owner. If there are too many, closes one without calls first.
    fn open(
        &mut self,
        owner: Owner,
        version: Option<FileVersion>,
        setup: &ConnectionSetup,
    ) -> Result<Arc<Connection>, Failure> {
        if self.others.len() >= INSTANCES_MAX {
            let unused = self.longest_unused(&setup.definition);
            self.close(unused.map(|(owner, _)| owner).ok_or_else(|| too_many(setup, INSTANCES_MAX))?);
        }
        let connection = Arc::new(open_on_demand(setup));
        self.others.insert(owner, Instance { connection: connection.clone(), version });
        Ok(connection)
    }

    fn longest_unused(&self, definition: &ServerDefinition) -> Option<(Owner, Instant)> {
        // Each call has a reference of its own. A server that is not shared may keep state, unless it is stopped.
        let unused = self.others.iter().filter(|(_, instance)| {
            let is_stopped = matches!(instance.connection.state(), ConnectionState::Idle);
            Arc::strong_count(&instance.connection) == 1 && (is_stopped || definition.is_shared)
        });
        let unused = unused.map(|(owner, instance)| (*owner, instance.connection.last_used()));
        unused.min_by_key(|(_, last_used)| *last_used)
    }

    fn close(&mut self, owner: Owner) {
        if let Some(instance) = self.others.remove(&owner) {
            tokio::spawn(async move { instance.connection.close().await });
        }
    }
}

/// Opens a connection that starts its server when it is first called, and stops it when it is idle.
fn open_on_demand(setup: &ConnectionSetup) -> Connection {
    let mut setup = setup.clone();
    let start = &mut setup.definition.start;
    (start.lazy, start.idle_stop) = (true, start.idle_stop.or(Some(IDLE_STOP)));
    Connection::open(&setup)
}

/// Returns the failure of a call for which there is no room, because this number of others use the server, or all such servers.
pub(super) fn too_many(setup: &ConnectionSetup, others: usize) -> Failure {
    let name = &setup.name;
    let reason = match &setup.definition.user_credential {
        Some(_) => "has a connection for each user (auth = \"per_user\")",
        None => "is not shared by clients (share = false)",
    };
    let message = format!("server {name} {reason}, and {others} others are in use; retry later");
    let failure = Failure::new(FailureCode::UpstreamUnavailable, message);
    Failure { server: Some(name.to_string()), retryable: true, ..failure }
}
