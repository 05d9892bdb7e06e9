//! Starts each server once for `lockhouse setup`, before it is taken over: new servers in the sandbox, and those that do
//! not list their tools in it once more: with user namespaces if they seem to need them, and finally without the sandbox.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_config::{self as config, ConfigError, Environment, Settings};
use lockhouse_policies::{Policy, ServerOffer};
use lockhouse_protocol::ServerName;
use lockhouse_setup::{Attempt, Plan};
use lockhouse_upstream::{Connection, Endpoint, ServerDefinition, refused_path, without_sandbox_advice};

use crate::cli::policy::init;
use crate::cli::sandbox::unchangeable_files;
use crate::cli::server::connect_all;
use crate::cli::terminal::sanitize;
use crate::cli::unavailable_servers::unavailable_reason;
use crate::cli::{start_with, table};

/// The maximum time for the start of one server. It is longer than the usual one, since in the sandbox the first start
/// of a server with npx or uvx downloads its packages into caches of its own.
const START_MAX: Duration = Duration::from_secs(90);

/// How one server started.
#[derive(Default)]
pub(super) struct StartResult {
    tools: usize,
    time: Option<Duration>,
    /// Whether the server was started in the sandbox. `None` for a server without a process.
    confined: Option<bool>,
    /// Why the server did not start in the sandbox as it was proposed, if it was tried.
    refusal: Option<String>,
    /// The files that the server's configuration names and that it cannot change in the sandbox.
    unchangeable: Vec<PathBuf>,
    /// Why the server did not start at all.
    pub(super) error: Option<String>,
}

/// How the servers started.
#[derive(Default)]
pub(super) struct StartResults {
    servers: BTreeMap<ServerName, StartResult>,
    /// The tools of the servers, for a first policy.
    pub(super) offers: Vec<ServerOffer>,
}

impl StartResults {
    /// Starts the configured servers and those that are taken over. Sets in the entries of servers what they need to start:
    /// user namespaces in the sandbox, or no sandbox. Returns `None` if nothing can be started, after the reason was printed.
    pub(super) async fn obtain(
        settings: &Settings,
        plan: &mut Plan<'_>,
        path: &Path,
        environment: &Environment,
    ) -> Result<Option<Self>, ConfigError> {
        let mut results = Self::default();
        let mut definitions = BTreeMap::new();
        for server in &plan.servers {
            match server.resolve(environment, path) {
                Ok(definition) => drop(definitions.insert(server.name().clone(), definition)),
                Err(reason) => results.fail(server.name(), reason.to_string()),
            }
        }
        let (definitions, refused) = config::apply_requirements(definitions, environment)?;
        for (name, reason) in refused {
            results.fail(&name, reason);
        }
        let configured = settings.engine.servers.clone();
        let first: BTreeMap<_, _> = configured.into_iter().chain(definitions.clone()).collect();
        if !results.start(settings, first).await {
            return Ok(None);
        }
        for attempt in [Attempt::UserNamespaces, Attempt::NoSandbox] {
            let failed = results.servers.iter().filter_map(|(name, result)| {
                let refusal = result.error.clone().filter(|error| attempt.may_help(error))?;
                Some((name.clone(), result.refusal.clone().unwrap_or(refusal)))
            });
            let refusals: BTreeMap<ServerName, String> = failed.collect();
            let again = definitions.iter().filter(|(name, definition)| {
                refusals.contains_key(name) && is_confined(definition) == Some(true)
            });
            let again: BTreeMap<_, _> =
                again.map(|(name, definition)| (name.clone(), attempt.changed(definition.clone()))).collect();
            let names: Vec<ServerName> = again.keys().cloned().collect();
            if !again.is_empty() && !results.start(settings, again).await {
                return Ok(None);
            }
            for name in names {
                let Some(result) = results.servers.get_mut(&name) else { continue };
                result.refusal = refusals.get(&name).cloned();
                if result.error.is_none() {
                    plan.change_sandbox(&name, attempt);
                }
            }
        }
        Ok(Some(results))
    }

    fn fail(&mut self, name: &ServerName, reason: String) {
        let result = StartResult { error: Some(reason), ..StartResult::default() };
        self.servers.insert(name.clone(), result);
    }

    /// Starts the servers, and adds the results. Returns whether that was possible.
    async fn start(
        &mut self,
        settings: &Settings,
        mut servers: BTreeMap<ServerName, ServerDefinition>,
    ) -> bool {
        for definition in servers.values_mut() {
            definition.limits.start_timeout = definition.limits.start_timeout.max(START_MAX);
        }
        let mut engine = settings.engine.clone();
        engine.servers = servers.clone();
        let Ok(supervisor) = start_with(engine, Policy::empty(), &[]) else { return false };
        let gate = supervisor.gate();
        connect_all(gate.upstreams()).await;
        for (name, definition) in &servers {
            if let Some(connection) = gate.upstreams().get(name) {
                let mut result = StartResult::new(connection, definition);
                result.unchangeable = unchangeable_files(name, definition, &settings.engine.places);
                self.servers.insert(name.clone(), result);
            }
        }
        let started = |offer: &ServerOffer| {
            self.servers.iter().any(|(name, result)| *name == offer.name && result.error.is_none())
        };
        let offers: Vec<ServerOffer> = init::offers(&gate).into_iter().filter(started).collect();
        self.offers.extend(offers);
        supervisor.close().await;
        true
    }

    /// Returns the names of the servers that did not start.
    pub(super) fn failed(&self) -> Vec<ServerName> {
        let failed = self.servers.iter().filter(|(_, result)| result.error.is_some());
        failed.map(|(name, _)| name.clone()).collect()
    }

    /// Prints a table of the servers, and what to do about those that do not start in the sandbox. `path` is the
    /// configuration file.
    pub(super) fn show(&self, path: &Path) {
        if self.servers.is_empty() {
            return;
        }
        let rows: Vec<Vec<String>> = self.servers.iter().map(|(name, result)| result.row(name)).collect();
        println!("\n{}\n", table::render(&["server", "tools", "time", "sandbox", "error"], &rows));
        for (name, result) in &self.servers {
            if let Some(refusal) = result.refusal.as_ref().filter(|_| result.error.is_none()) {
                show_refusal(name, refusal, result.confined == Some(true), path);
            }
            result
                .unchangeable
                .iter()
                .filter(|_| result.error.is_none())
                .for_each(|file| show_unchangeable(name, file));
        }
    }
}

impl StartResult {
    fn new(connection: &Connection, definition: &ServerDefinition) -> Self {
        let error = unavailable_reason(connection).map(|error| without_sandbox_advice(&error).to_owned());
        let is_started = error.is_none();
        let tools = connection.known_catalogue().filter(|_| is_started);
        Self {
            tools: tools.map_or(0, |catalogue| catalogue.tools.len()),
            time: connection.status().start_time.filter(|_| is_started),
            confined: is_confined(definition),
            refusal: None,
            unchangeable: Vec::new(),
            error,
        }
    }

    fn row(&self, name: &ServerName) -> Vec<String> {
        let sandbox = match self.confined {
            Some(true) if !self.unchangeable.is_empty() => "yes, see below",
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        vec![
            name.to_string(),
            if self.error.is_none() { self.tools.to_string() } else { String::new() },
            self.time.map_or_else(String::new, |time| format!("{} ms", time.as_millis())),
            if self.error.is_none() { sandbox.to_owned() } else { String::new() },
            self.error.clone().unwrap_or_default().replace('\n', " "),
        ]
    }
}

/// Tells that a server lists its tools in the sandbox, and cannot use a file there that its configuration names.
fn show_unchangeable(name: &ServerName, file: &Path) {
    println!(
        "{name} cannot change {} in the sandbox, so calls that write it will fail. Put the file into a folder of its own, and name that in \
         the configuration of {name}",
        sanitize(&file.display().to_string())
    );
}

/// Tells why a server does not run in the sandbox as it was proposed, and which setting may change that. The path is what
/// the server said, so the user must judge it.
fn show_refusal(name: &ServerName, refusal: &str, is_confined: bool, path: &Path) {
    if is_confined {
        println!(
            "{name} runs in the sandbox with user_namespaces = true, which lets it use more of the kernel. Without that, it did not list its tools: {}",
            sanitize(refusal)
        );
        return;
    }
    println!("{name} runs without a sandbox. In it, it did not list its tools: {}", sanitize(refusal));
    let grant = match refused_path(refusal) {
        Some(refused) => format!(
            "the server says that it was refused {}. If it may have that, set",
            sanitize(refused)
        ),
        None => "`lockhouse server logs` shows what it says. To run it in the sandbox, find what it needs, and set".to_owned(),
    };
    println!(
        "  {grant} sandbox = {{ profile = \"default\", read = [\"/PATH\"], write = [\"/PATH\"] }} below [servers.{name}] in {}, and run \
         `lockhouse server test {name}`",
        sanitize(&path.display().to_string())
    );
}

/// Whether a server is started in a sandbox. `None` for a server without a process.
fn is_confined(definition: &ServerDefinition) -> Option<bool> {
    match &definition.endpoint {
        Endpoint::Stdio(command) => Some(command.confinement.is_some()),
        Endpoint::Http(_) | Endpoint::Socket(_) => None,
    }
}
