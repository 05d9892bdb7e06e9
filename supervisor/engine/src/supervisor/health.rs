//! How this process is, in words and numbers without a secret: what `/health` answers, and `lockhouse status` shows.

use std::collections::BTreeMap;

use lockhouse_base::language::Language;
use lockhouse_pool::{Figures, Prepared};
use lockhouse_upstream::{Connection, State};
use serde::Serialize;
use serde_json::{Value, json};

use super::Supervisor;

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    pub version: &'static str,
    pub pid: u32,
    pub uptime_s: f64,
    pub ready: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    pub draining: bool,
    /// Whether clients reach it: `lockhouse run` has none.
    pub serving: bool,
    /// Runs that are under way.
    pub running: usize,
    /// Of them, those that wait for a worker.
    pub queue: usize,
    pub engines: BTreeMap<&'static str, Engine>,
    pub upstreams: BTreeMap<String, Upstream>,
    pub sessions: usize,
    pub results: Kept,
    pub audit: Audit,
    pub configuration: Configuration,
}

/// One language.
#[derive(Clone, Debug, Serialize)]
pub struct Engine {
    /// `starting`, `ready` or `missing`.
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// `full` or `reduced`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reduced: Vec<String>,
    /// Why it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<Figures>,
}

/// One server.
#[derive(Clone, Debug, Serialize)]
pub struct Upstream {
    /// `idle`, `connecting`, `connected` or `failed`.
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Calls that it has answered.
    pub answered: u64,
    pub reconnects: u64,
}

/// Results that are kept.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Kept {
    pub kept: usize,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Audit {
    pub writable: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Configuration {
    /// 1 at the start, and one more with every reload.
    pub generation: u64,
}

impl Health {
    /// For a client that is granted a part of the servers: nothing of the servers, and nothing that other clients can change.
    pub fn of_the_service_alone(&self) -> Value {
        let without_pool = |engine: &Engine| Engine { pool: None, ..engine.clone() };
        let engines: BTreeMap<&str, Engine> =
            self.engines.iter().map(|(language, engine)| (*language, without_pool(engine))).collect();
        json!({
            "version": self.version, "ready": self.ready, "reasons": self.reasons, "draining": self.draining,
            "serving": self.serving, "engines": engines,
        })
    }
}

impl Supervisor {
    pub fn health(&self) -> Health {
        let engine = |language: Language| (language.as_str(), self.engine(language));
        let engines = BTreeMap::from([Language::Python, Language::Typescript].map(engine));
        let pools = || engines.values().filter_map(|engine| engine.pool.as_ref());
        let queue = pools().map(|pool| pool.waiting).sum();
        let gate = self.gate();
        let upstreams = gate.upstreams().iter();
        let upstreams = upstreams.map(|(name, connection)| (name.to_string(), Upstream::of(connection)));
        let reasons = self.not_ready();
        let (kept, bytes) = self.results.count();
        Health {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            uptime_s: self.life.age().as_millis() as f64 / 1000.0,
            ready: reasons.is_empty(),
            draining: self.life.draining().is_cancelled(),
            serving: self.life.is_listening(),
            running: self.life.runs(),
            queue,
            upstreams: upstreams.collect(),
            sessions: self.sessions.list().len(),
            results: Kept { kept, bytes },
            audit: Audit { writable: gate.audit().is_writable() },
            configuration: Configuration { generation: self.life.generation() },
            engines,
            reasons,
        }
    }

    /// Why no run is taken now; nothing where one is.
    pub fn not_ready(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.life.draining().is_cancelled() {
            reasons.push("it drains before it ends: no run begins any more".to_owned());
        }
        if !self.life.is_settled() {
            reasons.push("its engines are still being prepared".to_owned());
        } else if !self.has_engine() {
            reasons.push("no engine is available; `lockhouse doctor` says why".to_owned());
        }
        if !self.gate().audit().is_writable() {
            reasons
                .push("the audit log cannot be written, and no call is made without its record".to_owned());
        }
        reasons
    }

    /// In a line: what runs, what waits, and which servers are there.
    pub fn in_a_line(&self) -> String {
        let waiting: usize = self.pools().map(|pool| pool.figures().waiting).sum();
        let gate = self.gate();
        let (mut connected, mut servers) = (0, 0);
        for (_, connection) in gate.upstreams().iter() {
            servers += 1;
            connected += usize::from(matches!(connection.state(), State::Connected(_)));
        }
        let running = self.life.runs().saturating_sub(waiting);
        let begins = if self.life.draining().is_cancelled() { "draining: " } else { "" };
        format!("{begins}{running} running, {waiting} waiting, {connected} of {servers} servers connected")
    }

    fn has_engine(&self) -> bool {
        self.pools().any(|pool| matches!(pool.found(), Some(Ok(_))))
    }

    fn engine(&self, language: Language) -> Engine {
        let missing = |reason: String| Engine {
            state: "missing",
            runtime: None,
            sandbox: None,
            reduced: Vec::new(),
            reason: Some(reason),
            pool: None,
        };
        let pool = match self.pool(language) {
            Ok(pool) => pool,
            Err(error) => return missing(error.to_string()),
        };
        let figures = Some(pool.figures());
        match pool.found() {
            None => Engine { state: "starting", reason: None, pool: figures, ..missing(String::new()) },
            Some(Err(error)) => missing(error.to_string()),
            Some(Ok(Prepared { runtime, reduced, .. })) => Engine {
                state: "ready",
                runtime: Some(runtime),
                sandbox: Some(if reduced.is_empty() { "full" } else { "reduced" }),
                reduced,
                reason: None,
                pool: figures,
            },
        }
    }
}

impl Upstream {
    fn of(connection: &Connection) -> Self {
        let status = connection.status();
        let (state, reason) = match connection.state() {
            State::Idle => ("idle", None),
            State::Connecting => ("connecting", None),
            State::Connected(_) => ("connected", None),
            State::Failed(reason) => ("failed", Some(reason)),
        };
        let tools = connection.known().map(|catalogue| catalogue.tools.len());
        Self { state, reason, tools, answered: status.answered, reconnects: status.reconnects }
    }
}
