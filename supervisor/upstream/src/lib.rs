//! Connections to upstream servers: their start, their calls, their loss and their restart.
//!
//! # Parts
//!
//! - [`ServerDefinition`] is the configuration of a server. [`Connection`] is the interface for callers, `calls.rs`
//!   sends a call and returns its result (`calls/input_rounds.rs` sends it again with the input that the server asks
//!   for), `call_result.rs` converts results.
//! - `connection_task.rs` is the task that owns a connection. `connection_task/state_machine.rs` decides without I/O
//!   what follows each event; `restart_backoff.rs` computes delays; `monitor.rs` and `missed_ping.rs` wait for a live or a
//!   silent server.
//! - `server_start.rs` starts a server, `live_connection.rs` is a started one until its end. `start_fault.rs`,
//!   `stdout_noise.rs` and `package_runner.rs` explain why a server does not start. [`process_guard`] ends servers if
//!   this process is killed.
//! - `process.rs` is the process of a server, and `launcher.rs` starts it in the session of another account's person.
//! - `confine.rs` is the sandbox of a server with the key `sandbox`: `lockhouse confine` restricts itself and executes
//!   the server. `confine/profile.rs` and the files beside it compute what the profile grants.
//! - `http.rs`, `auth.rs` and `login.rs`: headers, proxies and OAuth of servers over HTTP. `login/callback.rs` is the
//!   listener for the browser.
//! - `tool_cache.rs` and `tool_pins.rs`: the stored tool lists, and the definitions that a person accepted.
//! - `call_concurrency.rs`, `in_flight_calls.rs`, `instances.rs`: how many calls run at one time, for whom, and on
//!   which instance. `user_connection.rs` and `user_credentials.rs`: instances with credentials of their user, which
//!   `shared_files.rs` has copies of what other hosts of a cluster have, and `served_hosts.rs` serves them a server of this host. `run_connections.rs` and `tool_scopes.rs`: instances with a token of their run.
//!
//! # Invariants
//!
//! - Nothing here accepts a call that the policy did not permit: [`Connection`] takes a
//!   [`PermittedCall`](lockhouse_policies::PermittedCall) and nothing else.
//! - Nothing but the connection task starts, closes or restarts a server.
//! - No server gets the whole environment of this process.
//! - No error, log or record shows a configured secret of a server.
//! - No call that a server may have carried out is sent again, except with the input that the server asked for.
//! - No question of a server reaches a user unless a call of that user is in flight.
//! - No server changes the pins of its tools. Only a person does, with `lockhouse server accept` or on the page.
//!
//! # Decisions
//!
//! - Tools outlive connections. Their list is stored, and used while a server is disconnected or not yet started. The
//!   pins are a second file: a cache may be deleted, a pin may not. A tool without a pin counts as changed, so no
//!   server can fill the file.
//! - A server is identified by a digest of its command, arguments and directory, or of its URL. Another program under
//!   the same name is another server; a new token is not.
//! - Health is derived from traffic. A server that answers is not pinged. A server that misses a ping after a timeout
//!   gets no call, and is restarted when the calls in flight have ended. One that has answered a call is restarted at
//!   once, others with backoff.
//! - Waiting for a slot is separate from calling, with a time limit of its own. It comes before the record, so that a
//!   call that waited too long was never made.
//! - Four servers start at one time for each core, and at least eight: dozens of interpreters that start together all
//!   miss their start timeout.
//! - OAuth tokens are obtained on demand, and renewed under a lock of their file. Scopes that a request lacked are
//!   requested at the next login: a user decides, never the model.
//! - With credentials of users, one list of tools serves all: that of the server without a credential, or with that of the
//!   service. A list of one user would show others what they cannot call, and change whenever another user connects.
//! - A result has one value. Content beside structured content is sent only if it says more (`call_result/content.rs`).
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod auth;
mod authority;
mod call_concurrency;
mod call_result;
mod call_types;
mod caller_signals;
mod calls;
mod change_notices;
mod child_process;
mod confine;
mod connect_error;
mod connection;
mod connection_setup;
mod connection_state;
mod connection_status;
mod connection_task;
mod definition;
mod direct_request;
mod elicitation_conversion;
mod elicitation_validation;
mod http;
mod http_proxy;
mod in_flight_calls;
mod input_required;
mod instances;
mod launcher;
mod list_pages;
mod live_connection;
mod login;
mod mcp_client_handler;
mod outgoing_request;
mod package_runner;
mod process;
pub mod process_guard;
mod program_digest;
mod request;
mod resource_and_prompt_lists;
mod resource_subscriptions;
mod run_connections;
mod served_hosts;
mod server_events;
mod server_identity;
mod server_log;
mod server_start;
mod shared_files;
mod start_fault;
mod stdout_noise;
mod storage_paths;
mod tool_cache;
mod tool_list;
mod tool_pattern;
mod tool_pins;
mod tool_scopes;
mod user_connection;
mod user_credentials;

use std::collections::BTreeMap;
use std::sync::Arc;

use lockhouse_base::secrets::Secrets;
use lockhouse_cluster::{ServerPlaces, Sharing};
use lockhouse_messages::Owner;
use lockhouse_policies::CallTarget;
use lockhouse_protocol::{Failure, ServerName};
use tokio::sync::Semaphore;

pub use authority::{ServerClass, ServerSandbox};
pub use call_concurrency::CallSlot;
pub use call_result::leaves_content_aside;
pub use change_notices::{ChangeNotice, ChangeNotices};
pub use child_process::REQUIRED_PATH;
pub use confine::{
    ConfineError, Grants, KernelGap, LANDLOCK_LAYERS_MAX, NamedPaths, SandboxPlaces, Withheld, exec_confined,
    has_landlock, kernel_gaps, profile_paths, program_files, refused_path, use_up_landlock_room,
    without_sandbox_advice,
};
pub use connection::Connection;
use connection_setup::ConnectionSetup;
pub use connection_state::{ConnectedServer, ConnectionState, ServerInfo};
pub use connection_status::ShutdownMethod;
pub use definition::{
    Authorization, Confinement, ConfinementProfile, DecodeRules, DirectExposure, Endpoint, ExchangeKind,
    Exposure, HttpEndpoint, HttpTransport, Network, OAuthClient, PREFIX_CHARS_MAX, ProgramRequirement,
    ProtocolMinimum, Proxy, ReferencedValues, RunAs, ServerCommand, ServerDefinition, ServerLimits,
    StartOptions, TextDecoding, TokenExchange, ToolSelection, UserCredential,
};
pub use direct_request::{DirectFailure, DirectRequest, DirectRequestKind};
use instances::{InstanceKey, Instances, too_many};
pub use launcher::{FileHelperProcess, LaunchError, Launchers, launch_servers};
pub use login::{Callback, LOGIN_REQUESTS_TIMEOUT, LOGIN_TIMEOUT, Login, LoginError, log_out};

use auth::LoginSource;
pub use auth::{ExchangeSettings, SubjectTokens};
pub use program_digest::program_digest;
pub use run_connections::RunConnections;
pub use served_hosts::serve_host;
use server_events::ServerEvents;
pub use server_events::{ServerEvent, ServerEventKind};
pub use shared_files::SharedFiles;
pub use start_fault::{NotExecutable, find_program};
pub use storage_paths::StoragePaths;
pub use tool_cache::cached_tools;
pub use tool_pins::{ChangedTool, Pins, PinsError, ToolReview};
pub use tool_scopes::ToolScopes;
pub use user_credentials::{UserAccount, UserCredentials, UserSecretError};

/// Environment variable that is set for every upstream server, to the mark of the process that started it (see
/// [`process_guard`]). `lockhouse serve` does not start if this variable is set, so that one Lockhouse cannot be an
/// upstream server of another one.
pub const NESTED_VARIABLE: &str = "LOCKHOUSE_UPSTREAM";

/// Maximum number of connections with credentials of users, to all servers together. For another one, one without calls is closed.
/// Bound: upstream servers.
const USER_CONNECTIONS_MAX: usize = 512;

/// Returns the maximum number of upstream servers that start at the same time, which depends on the number of CPU
/// cores. If dozens started together, each would start so slowly that all of them would time out.
fn starts_at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (4 * cores).max(8)
}

/// The connections to all upstream servers, by server name. Clones share the connections.
#[derive(Clone, Debug, Default)]
pub struct Upstreams {
    servers: Arc<BTreeMap<ServerName, Upstream>>,
    notices: ChangeNotices,
    events: ServerEvents,
    launchers: Launchers,
    subjects: SubjectTokens,
    sharing: Sharing,
    places: ServerPlaces,
}

#[derive(Clone, Debug)]
struct Upstream {
    setup: ConnectionSetup,
    connection: Arc<Connection>,
    /// The further connections of a server that must not be shared, or whose users have credentials of their own.
    instances: Arc<Instances>,
}

impl Upstream {
    fn has_accounts(&self) -> bool {
        self.setup.definition.user_credential.is_some()
    }
}

impl Upstreams {
    /// Starts the connection tasks of all upstream servers and returns at once. The tasks connect concurrently, to a
    /// lazy server only when it is needed. A server that fails to connect delays only the calls to this server. `paths`
    /// are the directories for cached tools, pins and logs.
    pub fn connect(servers: BTreeMap<ServerName, ServerDefinition>, paths: &StoragePaths) -> Self {
        Self::default().replace_servers(servers, paths).0
    }

    /// Starts the connection tasks like [`Self::connect`], but no server starts before `ready` completes.
    pub fn connect_after(
        ready: impl Future<Output = ()> + Send + 'static,
        servers: BTreeMap<ServerName, ServerDefinition>,
        paths: &StoragePaths,
    ) -> Self {
        let starts = Arc::new(Semaphore::new(0));
        let connected = Self::default().replace_servers_within(servers, paths, &starts).0;
        tokio::spawn(async move {
            ready.await;
            starts.add_permits(starts_at_once());
        });
        connected
    }

    /// Applies a changed configuration: keeps the connections of servers whose definitions are unchanged, and starts
    /// connection tasks for all other servers. Returns the connections of the new configuration, and the old
    /// connections that are no longer needed; these are still open, and the caller must close them.
    pub fn replace_servers(
        &self,
        servers: BTreeMap<ServerName, ServerDefinition>,
        paths: &StoragePaths,
    ) -> (Self, Self) {
        self.replace_servers_within(servers, paths, &Arc::new(Semaphore::new(starts_at_once())))
    }

    /// Does what [`Self::replace_servers`] does. A server needs a permit of `starts` while it starts.
    fn replace_servers_within(
        &self,
        servers: BTreeMap<ServerName, ServerDefinition>,
        paths: &StoragePaths,
        starts: &Arc<Semaphore>,
    ) -> (Self, Self) {
        let Self { notices, events, launchers, subjects, sharing, places, .. } = self;
        let mut obsolete = (*self.servers).clone();
        let mut connect = |(name, definition): (ServerName, ServerDefinition)| {
            let is_unchanged = obsolete
                .get(&name)
                .is_some_and(|upstream| upstream.setup.definition.is_same_server(&definition));
            let existing = if is_unchanged { obsolete.remove(&name) } else { None };
            let upstream = existing.unwrap_or_else(|| {
                let (name, paths, starts) = (name.clone(), paths.clone(), starts.clone());
                let (notices, events, launchers) = (notices.clone(), events.clone(), launchers.clone());
                let login =
                    LoginSource::of_service(&name, definition.user_credential.is_some(), sharing.clone());
                let subjects = subjects.clone();
                let setup = ConnectionSetup {
                    name,
                    definition,
                    paths,
                    starts,
                    notices,
                    events,
                    launchers,
                    places: places.clone(),
                    login,
                    subjects,
                };
                Upstream { connection: Arc::new(Connection::open(&setup)), setup, instances: Arc::default() }
            });
            (name, upstream)
        };
        let connected = servers.into_iter().map(&mut connect).collect();
        let new_set = |servers: BTreeMap<_, _>| Self {
            servers: Arc::new(servers),
            notices: notices.clone(),
            events: events.clone(),
            launchers: launchers.clone(),
            subjects: subjects.clone(),
            sharing: sharing.clone(),
            places: places.clone(),
        };
        (new_set(connected), new_set(obsolete))
    }

    pub fn get(&self, name: &ServerName) -> Option<&Arc<Connection>> {
        self.servers.get(name).map(|upstream| &upstream.connection)
    }

    /// Returns the accepted tool definitions of a server.
    pub fn pins(&self, name: &ServerName) -> Option<Pins> {
        let setup = &self.servers.get(name)?.setup;
        Some(Pins::new(setup.paths.pins_file(name, &setup.definition)))
    }

    /// Returns the connection with which an owner (an AI client) calls a server: `connection`, which is that of the server,
    /// unless the server has `share = false` and another owner called it first, or its users have credentials of their own. If each
    /// run has tokens of its own, it is the connection for all that comes before the call ([`Self::for_run`]).
    ///
    /// # Errors
    /// Returns an error if too many owners use a server that is not shared, if the owner has no credential of their own for
    /// a server that needs one, or if the server was withdrawn.
    pub fn for_owner(&self, connection: &Arc<Connection>, owner: Owner) -> Result<Arc<Connection>, Failure> {
        connection.refuse_withdrawn()?;
        let Some(upstream) = self.servers.get(&connection.name) else { return Ok(connection.clone()) };
        let definition = &upstream.setup.definition;
        if definition.run_scopes().is_some() {
            upstream.setup.present_credential(owner.user())?;
            return Ok(connection.clone());
        }
        if definition.user_credential.is_some() {
            let key = InstanceKey::from(owner.user());
            self.make_room(upstream, &key)?;
            return upstream.instances.of_user(key, &upstream.setup);
        }
        if definition.is_shared {
            return Ok(connection.clone());
        }
        let own = upstream.instances.of(owner, &upstream.setup)?;
        Ok(own.unwrap_or_else(|| connection.clone()))
    }

    /// Returns the connection with which a run makes a permitted call: `connection`, which [`Self::for_owner`] has returned, unless
    /// the server has `token = "per_run"`.
    ///
    /// # Errors
    /// The user has no token that can be exchanged, too many connections are in use, or the server was withdrawn while the call waited.
    pub fn for_run(
        &self,
        connection: &Arc<Connection>,
        owner: Owner,
        run: &RunConnections,
        item: &CallTarget,
    ) -> Result<Arc<Connection>, Failure> {
        connection.refuse_withdrawn()?;
        let Some(upstream) = self.servers.get(&connection.name) else { return Ok(connection.clone()) };
        let Some(tool_scopes) = upstream.setup.definition.run_scopes() else { return Ok(connection.clone()) };
        let scopes = tool_scopes.of(upstream.setup.definition.scopes(), item);
        let key = run.key(owner.user(), scopes, &upstream.instances);
        self.make_room(upstream, &key)?;
        upstream.instances.of_user(key, &upstream.setup)
    }

    /// Whether calls of a server use credentials of each user.
    pub fn has_accounts(&self, name: &ServerName) -> bool {
        self.servers.get(name).is_some_and(Upstream::has_accounts)
    }

    /// Whether tokens of users are exchanged for tokens for any server.
    pub fn uses_exchange(&self) -> bool {
        let credentials = self.servers.values().map(|upstream| &upstream.setup.definition.user_credential);
        credentials.flatten().any(|credential| matches!(credential, UserCredential::Exchange(_)))
    }

    /// Returns the tokens with which users authenticate to the service. They stay the same when a changed configuration replaces
    /// the servers.
    pub fn subjects(&self) -> &SubjectTokens {
        &self.subjects
    }

    /// Returns what all hosts of a cluster share. It stays the same when a changed configuration replaces the servers.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Returns which hosts of a cluster run the servers of which all hosts use one process. It stays the same when a changed
    /// configuration replaces the servers.
    pub fn places(&self) -> &ServerPlaces {
        &self.places
    }

    /// Returns the connection to a server of which all hosts of a cluster use one process. `None` if there is no such server.
    pub fn single(&self, name: &ServerName) -> Option<&Arc<Connection>> {
        let upstream = self.servers.get(name)?;
        let is_single =
            matches!(&upstream.setup.definition.endpoint, Endpoint::Stdio(command) if command.is_single);
        is_single.then_some(&upstream.connection)
    }

    /// Forgets the token of a user, and closes the connections with credentials of that user, also those with calls.
    pub fn close_connections_of(&self, user: Owner) {
        self.subjects.forget(user);
        let of_users = self.servers.values().filter(|upstream| upstream.has_accounts());
        of_users.for_each(|upstream| upstream.instances.close(user.user()));
    }

    /// If a user has no connection to a server, and all users together have too many to all servers, closes the one that has been
    /// without a call for longest.
    fn make_room(&self, upstream: &Upstream, key: &InstanceKey) -> Result<(), Failure> {
        let of_users = || self.servers.values().filter(|upstream| upstream.has_accounts());
        let count = || of_users().map(|upstream| upstream.instances.count()).sum::<usize>();
        if upstream.instances.has(key) || count() < USER_CONNECTIONS_MAX {
            return Ok(());
        }
        let unused =
            of_users().filter_map(|of| Some((of, of.instances.longest_unused(&of.setup.definition)?)));
        let unused = unused.min_by_key(|(_, (_, last_used))| *last_used);
        let (of, (key, _)) = unused.ok_or_else(|| too_many(&upstream.setup, USER_CONNECTIONS_MAX))?;
        of.instances.close_unused(&key);
        Ok(())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, &Arc<Connection>)> {
        self.servers.iter().map(|(name, upstream)| (name, &upstream.connection))
    }

    /// Returns the channel that announces changes of the tools, prompts and resources of those upstream servers that AI
    /// clients use directly. The channel stays the same when a changed configuration replaces the servers.
    pub fn notices(&self) -> &ChangeNotices {
        &self.notices
    }

    /// Returns where launchers of the person connect whom the engine of the system serves. It stays the same when a changed
    /// configuration replaces the servers.
    pub fn launchers(&self) -> &Launchers {
        &self.launchers
    }

    /// Returns how a server over HTTP is reached. `None` if there is no such server.
    pub fn http_endpoint(&self, name: &ServerName) -> Option<&HttpEndpoint> {
        match &self.servers.get(name)?.setup.definition.endpoint {
            Endpoint::Http(endpoint) => Some(endpoint),
            Endpoint::Stdio(_) | Endpoint::Socket(_) => None,
        }
    }

    /// Returns the account of an owner (an AI client) at a server. `None` if calls of the server use no credentials of users.
    pub fn user_account(&self, name: &ServerName, owner: Owner) -> Option<UserAccount> {
        let setup = &self.servers.get(name)?.setup;
        UserAccount::of(owner.user(), name, &setup.definition, setup.paths.users.as_ref())
    }

    /// Whether a user has credentials of their own for a server. False if its calls use none of users.
    pub fn has_credential(&self, name: &ServerName, owner: Owner) -> bool {
        self.user_account(name, owner).is_some_and(|account| account.is_present())
    }

    /// Returns the page on which users log in to a server. `None` if there is none.
    pub fn login_page(&self, name: &ServerName) -> Option<String> {
        let setup = &self.servers.get(name)?.setup;
        let credential = setup.definition.user_credential.as_ref()?;
        if matches!(credential, UserCredential::Exchange(_)) {
            return None;
        }
        Some(setup.paths.users.as_ref()?.login_page(name)?.into())
    }

    /// Whether a server runs in the account of the person whom the engine of the system serves.
    pub fn runs_as_person(&self, name: &ServerName) -> bool {
        let definition = self.servers.get(name).map(|upstream| &upstream.setup.definition);
        definition.is_some_and(|definition| {
            matches!(&definition.endpoint, Endpoint::Stdio(command) if command.run_as == RunAs::Person)
        })
    }

    /// Passes the starts and ends of all servers to `observer` from now on, also of those of later configurations. Only the
    /// first observer receives them.
    pub fn observe(&self, observer: impl Fn(ServerEvent) + Send + Sync + 'static) {
        self.events.observe(Box::new(observer));
    }

    /// Returns all secrets in the configuration of the upstream servers, for redaction.
    pub fn secrets(&self) -> Secrets {
        Secrets::union(self.servers.values().map(|upstream| &upstream.connection.secrets))
    }

    /// Returns the number of upstream servers.
    pub fn count(&self) -> usize {
        self.servers.len()
    }

    /// Waits for each server until it is connected or has failed to start, but not much longer than its start timeout.
    pub async fn wait_settled(&self) {
        futures_util::future::join_all(self.iter().map(|(_, connection)| connection.connected_server()))
            .await;
    }

    /// Refuses all further calls of these servers, because the administrator does not permit them any more. The connections
    /// stay open until they are closed.
    pub fn withdraw(&self) {
        self.connections().iter().for_each(|connection| connection.withdraw());
    }

    /// Closes all connections and waits until the processes of the servers have exited.
    pub async fn close(&self) {
        let connections = self.connections();
        futures_util::future::join_all(connections.iter().map(|connection| connection.close())).await;
    }

    pub fn is_closed(&self) -> bool {
        self.connections().iter().all(|connection| connection.is_closed())
    }

    /// Returns all connections, also those of single owners.
    fn connections(&self) -> Vec<Arc<Connection>> {
        let of = |upstream: &Upstream| {
            upstream.instances.others().into_iter().chain([upstream.connection.clone()])
        };
        self.servers.values().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use lockhouse_base::principal::owner_of_name;
    use lockhouse_base::sealing_key::{Purpose, SealingKey};
    use lockhouse_protocol::{ExecutionId, FailureCode, ToolName};
    use tokio::sync::oneshot;

    use super::*;
    use definition::UserCredential;

    /// Returns the configuration with one server, which creates a file when it is started.
    fn creating(file: &Path) -> BTreeMap<ServerName, ServerDefinition> {
        let command = ServerCommand {
            program: "touch".into(),
            arguments: vec![file.display().to_string()],
            ..ServerCommand::default()
        };
        let endpoint = Endpoint::Stdio(command);
        let server = ServerDefinition::new(endpoint, ServerLimits::default(), String::new());
        [(ServerName::new("s").unwrap(), server)].into()
    }

    async fn wait_for(file: &Path) {
        let exists = async {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), exists).await.expect("the server is started");
    }

    #[tokio::test]
    async fn the_connections_of_a_run_are_closed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let key = SealingKey::derive("0123456789abcdef0123456789abcdef", Purpose::UserCredentials).unwrap();
        let provider = ExchangeSettings {
            url: "http://127.0.0.1:1/".parse().unwrap(),
            client_id: "lockhouse".into(),
            client_secret: None,
            subject_type: "urn:ietf:params:oauth:token-type:access_token".into(),
        };
        let users = UserCredentials::new(folder.path(), key, None).with_exchange(Some(provider));
        let (name, mut server) = creating(&folder.path().join("started")).pop_first().unwrap();
        let scopes =
            ToolScopes(vec![("a".into(), "x".into()), ("b".into(), "x".into()), ("c".into(), "y".into())]);
        let exchange = TokenExchange { kind: ExchangeKind::Token, audience: None, per_run: Some(scopes) };
        server.user_credential = Some(UserCredential::Exchange(exchange));
        server.start.lazy = true;
        let paths = StoragePaths { users: Some(users), ..StoragePaths::default() };
        let upstreams = Upstreams::connect([(name.clone(), server)].into(), &paths);
        let (user, shared) = (owner_of_name("ada@issuer"), upstreams.get(&name).unwrap().clone());
        let count = || upstreams.servers[&name].instances.count();
        let [first, second] = [1, 2].map(|number| RunConnections::new(ExecutionId(number)));
        let call = |run: &RunConnections, tool: &str| {
            upstreams.for_run(&shared, user, run, &CallTarget::Tool(ToolName::new(tool).unwrap()))
        };
        assert_eq!(
            call(&first, "a").map(drop).map_err(|failure| failure.code),
            Err(FailureCode::LoginRequired)
        );
        upstreams.subjects().note(user, "token", Duration::from_secs(60));
        let a = call(&first, "a").unwrap();
        assert!(Arc::ptr_eq(&a, &call(&first, "b").unwrap()));
        assert!(
            !Arc::ptr_eq(&a, &call(&first, "c").unwrap()) && !Arc::ptr_eq(&a, &call(&second, "a").unwrap())
        );
        assert_eq!(count(), 3);
        drop(first);
        assert_eq!(count(), 1);
        upstreams.close_connections_of(user);
        assert_eq!(count(), 0);
        drop(second);
    }

    #[tokio::test]
    async fn users_have_a_bounded_number_of_connections_to_all_servers_together() {
        let folder = tempfile::tempdir().unwrap();
        let key = SealingKey::derive("0123456789abcdef0123456789abcdef", Purpose::UserCredentials).unwrap();
        let users = UserCredentials::new(folder.path(), key, None);
        let (_, mut server) = creating(&folder.path().join("started")).pop_first().unwrap();
        server.user_credential = Some(UserCredential::Secret("SECRET".into()));
        server.start.lazy = true;
        let servers: BTreeMap<_, _> =
            (0..10).map(|number| (ServerName::new(format!("s{number}")).unwrap(), server.clone())).collect();
        let paths = StoragePaths { users: Some(users.clone()), ..StoragePaths::default() };
        let upstreams = Upstreams::connect(servers, &paths);
        let connect = |number: usize| {
            let (name, connection) = upstreams.iter().nth(number % 10).unwrap();
            let user = owner_of_name(&format!("token:{number}"));
            UserAccount::of(user, name, &server, Some(&users)).unwrap().set_secret("x").unwrap();
            upstreams.for_owner(connection, user)
        };
        let count = || upstreams.servers.values().map(|upstream| upstream.instances.count()).sum::<usize>();
        let used: Vec<_> = (0..USER_CONNECTIONS_MAX).map(|number| connect(number).unwrap()).collect();
        assert_eq!(count(), USER_CONNECTIONS_MAX);
        let failure = connect(USER_CONNECTIONS_MAX).expect_err("all of them have calls");
        assert!(failure.retryable && failure.message.contains("512 others are in use"), "{failure:?}");
        drop(used);
        for number in 0..20 {
            connect(USER_CONNECTIONS_MAX + number).unwrap();
            assert_eq!(count(), USER_CONNECTIONS_MAX, "{number}");
        }
        assert!(!folder.path().join("started").exists());
    }

    #[tokio::test]
    async fn no_server_starts_before_it_may() {
        let folder = tempfile::tempdir().unwrap();
        let [delayed, control] = ["delayed", "control"].map(|name| folder.path().join(name));
        let (ready, is_ready) = oneshot::channel::<()>();
        let ready_later = async move { drop(is_ready.await) };
        let paths = StoragePaths::default();
        let _delayed = Upstreams::connect_after(ready_later, creating(&delayed), &paths);
        let _control = Upstreams::connect(creating(&control), &paths);
        wait_for(&control).await;
        assert!(!delayed.exists());
        ready.send(()).unwrap();
        wait_for(&delayed).await;
    }
}
