//! How this process is, in words and numbers without a secret: what `/health` answers, and `lockhouse status` shows.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::Supervisor;
use crate::language::Language;
use crate::pool::{Figures, Prepared};
use crate::upstream::{Connection, State};

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Health {
    pub(crate) version: &'static str,
    pub(crate) pid: u32,
    pub(crate) uptime_s: f64,
    pub(crate) ready: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reasons: Vec<String>,
    pub(crate) draining: bool,
    /// Whether clients reach it: `lockhouse run` has none.
    pub(crate) serving: bool,
    /// Runs that are under way.
    pub(crate) running: usize,
    /// Of them, those that wait for a worker.
    pub(crate) queue: usize,
    pub(crate) engines: BTreeMap<&'static str, Engine>,
    pub(crate) upstreams: BTreeMap<String, Upstream>,
    pub(crate) sessions: usize,
    pub(crate) results: Kept,
    pub(crate) audit: Audit,
    pub(crate) configuration: Configuration,
}

/// One language.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Engine {
    /// `starting`, `ready` or `missing`.
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runtime: Option<String>,
    /// `full` or `reduced`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reduced: Vec<String>,
    /// Why it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pool: Option<Figures>,
}

/// One server.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Upstream {
    /// `idle`, `connecting`, `connected` or `failed`.
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<usize>,
    /// Calls that it has answered.
    pub(crate) answered: u64,
    pub(crate) reconnects: u64,
}

/// Results that are kept.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Kept {
    pub(crate) kept: usize,
    pub(crate) bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Audit {
    pub(crate) writable: bool,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Configuration {
    /// 1 at the start, and one more with every reload.
    pub(crate) generation: u64,
}

impl Health {
    /// For a client that is granted a part of the servers: nothing of the servers, and nothing that other clients can change.
    pub(crate) fn of_the_service_alone(&self) -> Value {
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
    pub(crate) fn health(&self) -> Health {
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
    pub(crate) fn not_ready(&self) -> Vec<String> {
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
    pub(crate) fn in_a_line(&self) -> String {
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
            Err(reason) => return missing(reason),
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
