//! The supervisor, the core of a Lockhouse process: starts all parts from the configuration, runs code, and shuts the
//! parts down in order.

mod administration;
mod administrator_stop;
mod cluster_report;
mod definition_acceptance;
mod direct_calls;
mod fronts;
mod gauges;
mod health;
mod import_scan;
mod policy_proposal;
mod policy_warnings;
mod reload;
mod reload_requests;
mod run_code;
mod server_logins;
mod server_secrets;
mod settings;
mod stored_values;
mod unavailable_engine;
mod user_logins;
mod worker_pools;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::sync::watch;

use lockhouse_access::Authenticator;
use lockhouse_approvals::{Approvers, Presence, level_of_rule};
use lockhouse_audit::{Audit, AuditError};
use lockhouse_base::lifecycle::Lifecycle;
use lockhouse_gate::{Gate, GateStores};
use lockhouse_messages::{Incarnation, Owner};
use lockhouse_policies::Policy;
use lockhouse_pool::{ControlGroups, PoolError, ZygoteInfo};
use lockhouse_protocol::Language;
use lockhouse_stores::result_files::ResultFiles;
use lockhouse_stores::results::Results;
use lockhouse_stores::skills::Skills;
use lockhouse_upstream::Upstreams;

use self::fronts::RegisteredFront;
use crate::cluster::Cluster;
use crate::connected_clients::ConnectedClients;
use crate::direct::{DirectServers, SuspendedCalls};
use crate::execution::Cancellation;
use crate::mcp_sessions::McpSessions;
use crate::runs::Runs;
use crate::sessions::Sessions;
use administration::ServingProcess;
pub use direct_calls::DirectCallOutcome;
pub(crate) use direct_calls::stopped_failure;
pub use gauges::set_gauges;
pub use health::{Health, HttpProcess};
pub use policy_proposal::ProposalError;
use reload::ActiveConfiguration;
pub use reload_requests::{ReloadRequest, ReloadUnavailable};
pub use run_code::CodeRequest;
pub use server_logins::ServerLoginError;
use server_logins::ServerLogins;
pub use server_secrets::SecretError;
pub use settings::{BackgroundRunSettings, EngineSettings, PackageSettings, ProposalFiles};
pub use unavailable_engine::{EngineUnavailable, MissingProgram, PrepareError};
use user_logins::UserLogins;
pub use worker_pools::WorkerKind;
use worker_pools::WorkerPools;

/// The running supervisor: owns the worker pools, the upstream connections, the sessions and all other parts of the
/// engine crate.
#[derive(Debug)]
pub struct Supervisor {
    /// The settings with which the process was started. A reload of the configuration leaves them unchanged: it
    /// replaces only the upstream servers and the policy, which `in_force` holds, and the pool of Python workers with
    /// packages.
    settings: EngineSettings,
    in_force: Mutex<Arc<ActiveConfiguration>>,
    retired_upstreams: Mutex<Vec<Upstreams>>,
    /// The channel for operators' requests to reload the configuration. `None` if this process does not reload it.
    reload_requests: Mutex<Option<mpsc::Sender<ReloadRequest>>>,
    results: Arc<Results>,
    result_files: ResultFiles,
    approvers: Arc<Approvers>,
    sessions: Sessions,
    runs: Runs,
    direct: DirectServers,
    suspended_calls: SuspendedCalls,
    fronts: Mutex<Vec<RegisteredFront>>,
    /// Verifies the credentials of AI clients. Empty if no front serves clients over HTTP.
    authenticator: OnceLock<Arc<Authenticator>>,
    connected_clients: ConnectedClients,
    mcp_sessions: McpSessions,
    http_processes: Mutex<Vec<HttpProcess>>,
    /// Why nothing may run, for clients. `None` if code may run.
    stop: watch::Sender<Option<Arc<str>>>,
    lifecycle: Lifecycle,
    incarnation: Incarnation,
    pools: WorkerPools,
    serving_process: ServingProcess,
    /// Empty without a cluster.
    cluster: OnceLock<Arc<Cluster>>,
    logins: ServerLogins,
    user_logins: UserLogins,
}

impl Supervisor {
    /// Starts the supervisor: opens the audit log, begins to connect to all upstream servers, and starts the worker
    /// pools of `languages`. Fails only if the audit log cannot be opened.
    ///
    /// If the interpreter of a language is missing, each request to run code in that language fails. The other language
    /// still works.
    pub fn start(
        settings: EngineSettings,
        policy: Policy,
        languages: &[Language],
    ) -> Result<Self, AuditError> {
        let results = Results::in_memory(settings.results);
        let files = ResultFiles::of_process(settings.state_directory.clone(), settings.result_files);
        Self::start_with_results(settings, policy, languages, results, files)
    }

    /// Starts the supervisor like [`Self::start`], but with the given stores for results and files. With stores that
    /// commands share, other processes can read the results.
    pub fn start_with_results(
        settings: EngineSettings,
        policy: Policy,
        languages: &[Language],
        results: Results,
        result_files: ResultFiles,
    ) -> Result<Self, AuditError> {
        let audit = Audit::open(settings.audit.clone())?;
        for refusal in &settings.refused {
            tracing::warn!("{refusal}");
        }
        // Control groups come first, since every zygote must start inside the supervisor's own part of the hierarchy.
        let pools = WorkerPools::start(&settings, languages, ControlGroups::acquire());
        let upstreams =
            Upstreams::connect_after(pools.zygotes_ready(), settings.servers.clone(), &settings.places);
        audit.redact_secrets(upstreams.secrets());
        let skills = settings.skills.enabled.then(|| Arc::new(Skills::new(&settings.skills)));
        let reply_bytes_max = settings.limits.conversation.value_bytes() as usize;
        let results = Arc::new(results);
        let stores = GateStores {
            audit: audit.clone(),
            skills,
            results: results.clone(),
            result_files: result_files.clone(),
        };
        let gate = Gate::new(policy, upstreams, settings.host_files.clone(), stores, reply_bytes_max);
        let in_force = Mutex::new(ActiveConfiguration::new(gate, &settings));
        let approvers = {
            let directory = settings.state_directory.as_deref();
            Arc::new(Approvers::new(settings.approvals.clone(), settings.own_policy.clone(), directory))
        };
        approvers.queue().set_policy(in_force.lock().policy());
        let sessions = Sessions::new(settings.sessions);
        let (lifecycle, retired_upstreams) = (Lifecycle::new(settings.drain), Mutex::default());
        let runs = Runs::new(settings.runs, settings.clients, results.clone());
        let supervisor = Self {
            settings,
            in_force,
            retired_upstreams,
            reload_requests: Mutex::default(),
            results,
            result_files,
            approvers,
            sessions,
            runs,
            direct: DirectServers::default(),
            suspended_calls: SuspendedCalls::default(),
            fronts: Mutex::default(),
            authenticator: OnceLock::new(),
            connected_clients: ConnectedClients::default(),
            mcp_sessions: McpSessions::default(),
            http_processes: Mutex::default(),
            stop: watch::Sender::new(None),
            lifecycle,
            incarnation: Incarnation::generate(),
            pools,
            serving_process: ServingProcess::default(),
            cluster: OnceLock::new(),
            logins: ServerLogins::default(),
            user_logins: UserLogins::default(),
        };
        supervisor.set_stop(supervisor.settings.stop.as_deref());
        Ok(supervisor)
    }

    /// Waits until the zygote for workers of a kind is ready to fork workers. Returns what the zygote found out about its
    /// interpreter and about the protections on this host. Never completes for workers with packages if there are none,
    /// or if no program has started their zygote.
    pub async fn wait_until_prepared(&self, kind: impl Into<WorkerKind>) -> Result<ZygoteInfo, PrepareError> {
        match self.pools.get(kind.into()) {
            Some(pool) => Ok(pool?.zygote_info().await?),
            None => std::future::pending().await,
        }
    }

    /// Waits until the zygote of a language reports that a required protection of the sandbox is missing or
    /// ineffective. Returns this error, after which Lockhouse must not serve AI clients. Never completes if all
    /// required protections hold.
    pub async fn wait_for_failed_protection(&self) -> Arc<PoolError> {
        let failed_protection = async |kind: WorkerKind| match self.wait_until_prepared(kind).await {
            Err(PrepareError::Pool(error)) if matches!(*error, PoolError::Unprotected { .. }) => error,
            _ => std::future::pending().await,
        };
        tokio::select! {
            reason = failed_protection(WorkerKind::Python) => reason,
            reason = failed_protection(WorkerKind::PythonPackages) => reason,
            reason = failed_protection(WorkerKind::Typescript) => reason,
        }
    }

    /// Returns the incarnation of this engine.
    pub(crate) fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Returns the lifecycle of this process, which shows whether the process is starting, serving, draining or
    /// closing.
    pub fn lifecycle(&self) -> &Lifecycle {
        &self.lifecycle
    }

    /// Returns what approvals of calls need: the approval queue, the counters of refusals, and the policy file to which
    /// an approval with the scope `always` adds a rule.
    pub fn approvers(&self) -> &Arc<Approvers> {
        &self.approvers
    }

    /// Returns the directory of the socket for people of other accounts.
    pub(crate) fn operators_directory(&self) -> Option<&Path> {
        self.settings.operators.as_deref()
    }

    /// Returns the strongest proof that an approval can need here: that of the configuration, or that of a rule of the policy.
    pub fn strongest_presence(&self) -> Presence {
        let of_rules = self.gate().policy().strongest_presence().map_or(Presence::None, level_of_rule);
        of_rules.max(self.approvers.presence().level())
    }

    /// Returns the store of results: values and outputs that were too long for an answer, and the answers of
    /// background runs.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// Returns the store of the files that runs returned.
    pub fn result_files(&self) -> &ResultFiles {
        &self.result_files
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    pub(crate) fn suspended_calls(&self) -> &SuspendedCalls {
        &self.suspended_calls
    }

    pub(crate) fn direct(&self) -> &DirectServers {
        &self.direct
    }

    /// Returns the registry of the AI clients that are connected over the socket for fronts of other processes.
    pub fn connected_clients(&self) -> &ConnectedClients {
        &self.connected_clients
    }

    /// Adds a process of the HTTP service, for reports about this process.
    pub fn add_http_process(&self, process: HttpProcess) {
        let mut processes = self.http_processes.lock();
        processes.push(process);
        processes.sort_by_key(|process| (process.role.process, process.pid));
    }

    /// Removes a process of the HTTP service, which has ended or is to end.
    pub fn remove_http_process(&self, pid: u32) {
        self.http_processes.lock().retain(|process| process.pid != pid);
    }

    /// Returns the MCP sessions that fronts for HTTP keep in the engine.
    pub(crate) fn mcp_sessions(&self) -> &McpSessions {
        &self.mcp_sessions
    }

    /// Ends the sessions of an AI client that has disconnected for ever, and deletes its stored results.
    pub(crate) fn forget_client(&self, owner: Owner) {
        self.sessions.forget(owner);
        self.results.forget(owner);
        self.runs.forget(owner);
    }

    /// Ends what runs for a user, and removes what this process stores about them.
    pub(crate) fn forget_user(&self, owner: Owner) {
        self.runs.end_of(owner, &Cancellation::Person);
        self.forget_client(owner);
        self.result_files.forget(owner);
        self.gate().upstreams().close_connections_of(owner);
    }

    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub fn settings(&self) -> &EngineSettings {
        &self.settings
    }
}

/// Logs the error if an audit record of a run could not be written. The run continues, because each of its calls is
/// made only after a record of that call was written.
fn log_audit_error(written: Result<(), AuditError>) {
    if let Err(error) = written {
        tracing::error!("{error}");
    }
}
