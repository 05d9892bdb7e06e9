//! The instances of a server with `share = false`: one for each owner that calls it. Those of a server whose users have credentials
//! of their own: one for each user, or for each of their runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_base::files::FileVersion;
use lockhouse_messages::Owner;
use lockhouse_protocol::{ExecutionId, Failure, FailureCode};
use parking_lot::Mutex;

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
    others: BTreeMap<InstanceKey, Instance>,
}

/// Whose instance it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InstanceKey {
    pub(super) owner: Owner,
    /// `None` if all runs of the owner use it.
    pub(super) run: Option<RunKey>,
}

/// The run whose calls use an instance, and the scopes of its token, separated by spaces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RunKey {
    pub(super) run: ExecutionId,
    pub(super) scopes: String,
}

impl From<Owner> for InstanceKey {
    fn from(owner: Owner) -> Self {
        Self { owner, run: None }
    }
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
        let key = InstanceKey::from(owner);
        match owners.others.get(&key) {
            Some(instance) => Ok(Some(instance.connection.clone())),
            None => owners.open(key, None, setup).map(Some),
        }
    }

    /// Returns the connection of a user, or of a run of this user, with the user's own credential.
    ///
    /// # Errors
    /// Returns an error if the user has no credential, or if too many users have an instance with calls.
    pub(super) fn of_user(
        &self,
        key: InstanceKey,
        setup: &ConnectionSetup,
    ) -> Result<Arc<Connection>, Failure> {
        let mut owners = self.0.lock();
        // Looked up for each call: the user may have logged out meanwhile, in another process.
        let present = setup.present_credential(key.owner).inspect_err(|_| owners.close(&key))?;
        let version = present.version;
        if let Some(instance) = owners.others.get(&key).filter(|instance| instance.version == version) {
            return Ok(instance.connection.clone());
        }
        owners.close(&key);
        let mut setup = setup.with_credential(present)?;
        if let Some(RunKey { scopes, .. }) = &key.run {
            setup.definition.set_scopes(scopes);
        }
        owners.open(key, version, &setup)
    }

    /// Returns how many instances there are besides that of the first owner.
    pub(super) fn count(&self) -> usize {
        self.0.lock().others.len()
    }

    pub(super) fn has(&self, key: &InstanceKey) -> bool {
        self.0.lock().others.contains_key(key)
    }

    /// Returns the key of the instance without calls that has been so for longest, and when its last call ended.
    pub(super) fn longest_unused(&self, definition: &ServerDefinition) -> Option<(InstanceKey, Instant)> {
        self.0.lock().longest_unused(definition)
    }

    /// Closes all instances of an owner.
    pub(super) fn close(&self, owner: Owner) {
        self.0.lock().close_where(|key| key.owner == owner);
    }

    /// Closes the instances of a run.
    pub(super) fn close_run(&self, run: ExecutionId) {
        self.0.lock().close_where(|key| key.run.as_ref().is_some_and(|key| key.run == run));
    }

    /// Closes an instance, unless a call has begun on it meanwhile.
    pub(super) fn close_unused(&self, key: &InstanceKey) {
        let mut owners = self.0.lock();
        if owners.others.get(key).is_some_and(|instance| Arc::strong_count(&instance.connection) == 1) {
            owners.close(key);
        }
    }

    pub(super) fn others(&self) -> Vec<Arc<Connection>> {
        self.0.lock().others.values().map(|instance| instance.connection.clone()).collect()
    }
}

impl Owners {
    /// Opens a connection. If there are too many, closes one without calls first.
    fn open(
        &mut self,
        key: InstanceKey,
        version: Option<FileVersion>,
        setup: &ConnectionSetup,
    ) -> Result<Arc<Connection>, Failure> {
        if self.others.len() >= INSTANCES_MAX {
            let unused = self.longest_unused(&setup.definition);
            self.close(&unused.map(|(key, _)| key).ok_or_else(|| too_many(setup, INSTANCES_MAX))?);
        }
        let connection = Arc::new(open_on_demand(setup));
        self.others.insert(key, Instance { connection: connection.clone(), version });
        Ok(connection)
    }

    fn longest_unused(&self, definition: &ServerDefinition) -> Option<(InstanceKey, Instant)> {
        // Each call has a reference of its own. A server that is not shared may keep state, unless it is stopped.
        let unused = self.others.iter().filter(|(_, instance)| {
            let is_stopped = matches!(instance.connection.state(), ConnectionState::Idle);
            Arc::strong_count(&instance.connection) == 1 && (is_stopped || definition.is_shared)
        });
        let unused = unused.map(|(key, instance)| (key, instance.connection.last_used()));
        let unused = unused.min_by_key(|(_, last_used)| *last_used);
        unused.map(|(key, last_used)| (key.clone(), last_used))
    }

    fn close_where(&mut self, is_it: impl Fn(&InstanceKey) -> bool) {
        let keys: Vec<InstanceKey> = self.others.keys().filter(|key| is_it(key)).cloned().collect();
        keys.iter().for_each(|key| self.close(key));
    }

    fn close(&mut self, key: &InstanceKey) {
        if let Some(instance) = self.others.remove(key) {
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
        Some(_) if setup.definition.run_scopes().is_some() => {
            "has a connection for each run (token = \"per_run\")"
        }
        Some(_) => "has a connection for each user (auth = \"per_user\")",
        None => "is not shared by clients (share = false)",
    };
    let message = format!("server {name} {reason}, and {others} others are in use; retry later");
    let failure = Failure::new(FailureCode::UpstreamUnavailable, message);
    Failure { server: Some(name.to_string()), retryable: true, ..failure }
}
