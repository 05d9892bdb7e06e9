//! The health report of this process, for `/health` and `lockhouse status`. The report contains no secrets.

use std::collections::BTreeMap;

use lockhouse_audit::DeliveryStatus;
use lockhouse_base::process_roles::ProcessRole;
use lockhouse_catalog::Catalogue;
use lockhouse_messages::DigestsInForce;
use lockhouse_pool::{Pool, PoolStats, ZygoteInfo};
use lockhouse_upstream::{Connection, ConnectionState, KernelGap};
use serde::Serialize;
use serde_json::{Value, json};

use super::{EngineUnavailable, Supervisor, WorkerKind};
use crate::connected_clients::ConnectedClient;

/// The health of this process and of each of its parts.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    pub version: &'static str,
    pub pid: u32,
    pub uptime_s: f64,
    pub ready: bool,
    /// Reasons why the process cannot run code now. Empty if the process is ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    pub draining: bool,
    /// Whether AI clients can connect. False for `lockhouse run`.
    pub serving: bool,
    /// Number of active runs, including the runs that wait for a worker.
    pub running: usize,
    /// Number of runs that wait for a worker.
    pub queue: usize,
    /// The language engines: `python`, `typescript`, and `python_packages` if packages are configured.
    pub engines: BTreeMap<&'static str, EngineHealth>,
    pub upstreams: BTreeMap<String, UpstreamHealth>,
    /// The sealed processes that serve AI clients over HTTP for this one. Empty without HTTP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http_processes: Vec<HttpProcess>,
    /// The AI clients that share this process over its socket. Empty if the process serves its clients itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ConnectedClient>,
    pub sessions: usize,
    pub results: ResultsHealth,
    pub audit: AuditHealth,
    pub configuration: ConfigurationHealth,
}

/// A sealed process that serves AI clients over HTTP for this one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HttpProcess {
    pub pid: u32,
    #[serde(flatten)]
    pub role: ProcessRole,
}

/// The health of one language engine, which runs code of one language.
#[derive(Clone, Debug, Serialize)]
pub struct EngineHealth {
    /// The state of the language engine: `starting`, `on_demand` (the first program that imports a package starts it),
    /// `ready` or `missing`.
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// The sandbox protection of the workers: `full` or `reduced`. `None` unless the language engine is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reduced: Vec<String>,
    /// Why the language engine is missing. `None` if it is not missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolStats>,
}

/// The health of the connection to one upstream server.
#[derive(Clone, Debug, Serialize)]
pub struct UpstreamHealth {
    /// The state of the connection: `idle`, `connecting`, `connected` or `failed`.
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Number of tools whose definitions no user has accepted yet, so that they cannot be called. `None` if the tools
    /// are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_tools: Option<usize>,
    /// Size in bytes of all tool definitions, which an AI client would load without Lockhouse. `None` if the tools are
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definitions_bytes: Option<usize>,
    /// Number of calls that the upstream server has answered since Lockhouse started.
    pub answered: u64,
    pub reconnects: u64,
    /// Words for what the kernel does not enforce of the server's sandbox.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sandbox_lacks: Vec<&'static str>,
}

/// The number and the total size of the stored results.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ResultsHealth {
    pub kept: usize,
    pub bytes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct AuditHealth {
    pub writable: bool,
    /// The destinations to which the audit log is forwarded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forward: Vec<DeliveryStatus>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ConfigurationHealth {
    /// The generation of the configuration: 1 at the start of the process, and one more after every reload.
    pub generation: u64,
    /// The SHA-256 digests of what is in force.
    #[serde(flatten)]
    pub in_force: DigestsInForce,
}

impl Health {
    /// Returns the health report as JSON for an AI client that may use only some upstream servers. The report leaves
    /// out all upstream servers and the counters that other AI clients influence.
    pub fn service_only(&self) -> Value {
        let without_pool = |engine: &EngineHealth| EngineHealth { pool: None, ..engine.clone() };
        let engines: BTreeMap<&str, EngineHealth> =
            self.engines.iter().map(|(language, engine)| (*language, without_pool(engine))).collect();
        json!({
            "version": self.version, "ready": self.ready, "reasons": self.reasons, "draining": self.draining,
            "serving": self.serving, "engines": engines,
        })
    }
}

impl Supervisor {
    pub fn health(&self) -> Health {
        let engine = |kind: WorkerKind| Some((kind.as_str(), engine_health(kind, &self.pools.get(kind)?)));
        let engines: BTreeMap<_, _> = WorkerKind::ALL.into_iter().filter_map(engine).collect();
        let pools = || engines.values().filter_map(|engine| engine.pool.as_ref());
        let queue = pools().map(|pool| pool.waiting).sum();
        let gate = self.gate();
        let upstreams = gate.upstreams().iter();
        let upstreams = upstreams
            .map(|(name, connection)| (name.to_string(), UpstreamHealth::from_connection(connection)));
        let reasons = self.unready_reasons();
        let (kept, bytes) = self.results.usage();
        Health {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime_s: self.lifecycle.age().as_millis() as f64 / 1000.0,
            ready: reasons.is_empty(),
            draining: self.lifecycle.draining().is_cancelled() || self.is_withdrawn(),
            serving: self.lifecycle.is_listening(),
            running: self.lifecycle.runs_in_flight(),
            queue,
            upstreams: upstreams.collect(),
            http_processes: self.http_processes.lock().clone(),
            clients: self.connected_clients.list(),
            sessions: self.sessions.list().len(),
            results: ResultsHealth { kept, bytes },
            audit: AuditHealth { writable: gate.audit().is_writable(), forward: gate.audit().deliveries() },
            configuration: ConfigurationHealth {
                generation: self.lifecycle.config_generation(),
                in_force: self.digests_in_force(),
            },
            engines,
            reasons,
        }
    }

    /// Returns the reasons why the process cannot run code now. Empty if the process is ready.
    pub fn unready_reasons(&self) -> Vec<String> {
        let mut reasons: Vec<String> =
            self.stop_message().map(|message| message.to_string()).into_iter().collect();
        if self.lifecycle.draining().is_cancelled() {
            reasons.push("Lockhouse is draining before it shuts down: no new run is started".to_owned());
        }
        if self.is_withdrawn() {
            let undo = "`lockhouse cluster drain --undo` ends this";
            reasons.push(format!("an operator has let this host take no new work; {undo}"));
        }
        if !self.lifecycle.is_initialized() {
            reasons.push("the engines are still starting".to_owned());
        } else if !self.has_ready_engine() {
            reasons.push("no engine is available; run `lockhouse doctor` for the reason".to_owned());
        }
        if !self.gate().audit().is_writable() {
            reasons
                .push("the audit log cannot be written, and no call is made without its record".to_owned());
        }
        if let Err(error) = self.gate().audit().check_delivery() {
            reasons.push(format!("no call is made: {error}"));
        }
        reasons
    }

    /// Returns a one-line status: the numbers of active runs, of waiting runs and of connected upstream servers.
    pub fn status_line(&self) -> String {
        let waiting: usize = self.pools.all().map(|pool| pool.stats().waiting).sum();
        let gate = self.gate();
        let (mut connected, mut servers) = (0, 0);
        for (_, connection) in gate.upstreams().iter() {
            servers += 1;
            connected += usize::from(matches!(connection.state(), ConnectionState::Connected(_)));
        }
        let running = self.lifecycle.runs_in_flight().saturating_sub(waiting);
        let prefix = if self.lifecycle.draining().is_cancelled() { "draining: " } else { "" };
        format!("{prefix}{running} running, {waiting} waiting, {connected} of {servers} servers connected")
    }

    fn has_ready_engine(&self) -> bool {
        self.pools.all().any(|pool| matches!(pool.zygote_info_if_known(), Some(Ok(_))))
    }
}

fn engine_health(kind: WorkerKind, pool: &Result<Pool, EngineUnavailable>) -> EngineHealth {
    let missing = |reason: String| EngineHealth {
        state: "missing",
        runtime: None,
        sandbox: None,
        reduced: Vec::new(),
        reason: Some(reason),
        pool: None,
    };
    let pool = match pool {
        Ok(pool) => pool,
        Err(error) => return missing(error.to_string()),
    };
    let figures = Some(pool.stats());
    match pool.zygote_info_if_known() {
        None => {
            let state = if kind == WorkerKind::PythonPackages { "on_demand" } else { "starting" };
            EngineHealth { state, reason: None, pool: figures, ..missing(String::new()) }
        }
        Some(Err(error)) => missing(error.to_string()),
        Some(Ok(ZygoteInfo { runtime, reduced, .. })) => EngineHealth {
            state: "ready",
            runtime: Some(runtime),
            sandbox: Some(if reduced.is_empty() { "full" } else { "reduced" }),
            reduced,
            reason: None,
            pool: figures,
        },
    }
}

impl UpstreamHealth {
    fn from_connection(connection: &Connection) -> Self {
        let status = connection.status();
        let (state, reason) = match connection.state() {
            ConnectionState::Idle => ("idle", None),
            ConnectionState::Connecting => ("connecting", None),
            ConnectionState::Connected(_) => ("connected", None),
            ConnectionState::Failed(reason) => ("failed", Some(reason)),
        };
        let known = connection.known_catalogue();
        let changed = |known: &Catalogue| known.tools.iter().filter(|tool| tool.change.is_some()).count();
        Self {
            state,
            reason,
            tools: known.as_ref().map(|known| known.tools.len()),
            changed_tools: known.as_deref().map(changed),
            definitions_bytes: known.as_ref().map(|known| known.definitions_bytes),
            answered: status.answered_calls,
            reconnects: status.reconnects,
            sandbox_lacks: connection.sandbox_gaps().iter().map(KernelGap::name).collect(),
        }
    }
}
