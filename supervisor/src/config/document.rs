//! `config.toml` as it is written. Every key has a default, and a key that is not listed here is an error.

use std::path::PathBuf;

use lockhouse_audit::REDACTED;
use lockhouse_base::telemetry::log::Format;
use lockhouse_front::http::Address;
use lockhouse_gate::Through;
use lockhouse_policies::{Diagnostics, Source};
use lockhouse_upstream::ServerLimits;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::dialects::{self, Listed};
use super::excerpts::{diagnostic, fault};
use super::http::Http;
use super::partial::{self, Read};
use super::references::Surroundings;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub(super) limits: Limits,
    pub(super) pool: Pool,
    pub(super) sessions: Sessions,
    pub(super) runs: Runs,
    pub(super) python: Python,
    pub(super) javascript: JavaScript,
    pub(super) audit: Audit,
    pub(super) approvals: Approvals,
    pub(super) catalogue: Catalogue,
    pub(super) results: Results,
    pub(super) skills: Skills,
    pub(super) http: Http,
    pub(super) clients: Clients,
    pub(super) service: Service,
    pub(super) metrics: Metrics,
    pub(super) log: Log,
    pub(super) tools: Tools,
    /// Files of AI clients whose servers are ours too.
    pub(super) servers_files: Vec<String>,
    /// Read by [`dialects::read_own`], which knows what must not be shown.
    #[serde(rename = "servers")]
    tables: IgnoredAny,
    #[serde(skip)]
    pub(super) servers: Vec<Listed>,
    /// The SHA-256 of the file.
    #[serde(skip)]
    pub(super) digest: Option<String>,
}

/// `[limits]`: what one execution may use.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub(super) timeout_seconds: f64,
    /// How long a person may take for a question of an upstream server.
    pub(super) question_seconds: f64,
    pub(super) grace_ms: u32,
    pub(super) cpu_seconds: u32,
    pub(super) memory_mib: u32,
    pub(super) code_kib: u32,
    pub(super) output_kib: u32,
    pub(super) calls: u32,
    pub(super) parallel_calls: u32,
    /// The largest message between worker and supervisor, and with it the largest tool result and value.
    pub(super) frame_kib: u32,
    pub(super) shown_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout_seconds: 30.0,
            question_seconds: 300.0,
            grace_ms: 100,
            cpu_seconds: 30,
            memory_mib: 256,
            code_kib: 256,
            output_kib: 1024,
            calls: 1_000,
            parallel_calls: 64,
            frame_kib: 8 * 1024,
            shown_bytes: 10 * 1024,
        }
    }
}

/// `[pool]`: workers of each language.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Pool {
    pub(super) idle: u32,
    pub(super) running: u32,
    pub(super) queue: u32,
    pub(super) queue_per_client: u32,
    pub(super) recycle_after: u32,
    pub(super) recycle_seconds: u32,
    /// Whether a host that does not give full protection is refused.
    pub(super) require_full: bool,
    /// The user and group of workers when Lockhouse runs as root.
    pub(super) unprivileged_id: u32,
}

impl Default for Pool {
    fn default() -> Self {
        // 61184 to 65519 is systemd's range for services' own users, where nobody else has files.
        Self {
            idle: 4,
            running: 16,
            queue: 256,
            queue_per_client: 128,
            recycle_after: 1_000,
            recycle_seconds: 600,
            require_full: false,
            unprivileged_id: 61_500,
        }
    }
}

/// `[sessions]`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Sessions {
    pub(super) max: u32,
    pub(super) idle_seconds: f64,
    pub(super) life_seconds: f64,
}

impl Default for Sessions {
    fn default() -> Self {
        Self { max: 8, idle_seconds: 900.0, life_seconds: 14_400.0 }
    }
}

/// `[runs]`: those that take longer than a client waits.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Runs {
    pub(super) wait_seconds: f64,
    /// That go on without a request, at one time.
    pub(super) background: u32,
    pub(super) background_per_client: u32,
}

impl Default for Runs {
    fn default() -> Self {
        Self { wait_seconds: 45.0, background: 64, background_per_client: 16 }
    }
}

/// `[python]`
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Python {
    pub(super) interpreter: Option<PathBuf>,
    pub(super) extension: Option<PathBuf>,
    pub(super) preload: Vec<String>,
}

/// `[javascript]`
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct JavaScript {
    pub(super) worker: Option<PathBuf>,
}

/// `[audit]`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Audit {
    pub(super) directory: Option<PathBuf>,
    /// Whether the values of arguments are kept.
    pub(super) values: bool,
    /// Names of arguments whose values are never kept.
    pub(super) redact: Vec<String>,
    /// Whether programs are kept.
    pub(super) code: bool,
    pub(super) keep_days: u32,
}

impl Default for Audit {
    fn default() -> Self {
        let redact = REDACTED.map(str::to_owned).to_vec();
        Self { directory: None, values: false, redact, code: true, keep_days: 30 }
    }
}

/// `[approvals]`: calls that the policy leaves to a person.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Approvals {
    pub(super) through: Through,
    /// How long a person may take; as long as for a question of an upstream server if it is not said.
    pub(super) wait_seconds: Option<f64>,
}

/// `[catalogue]`: the tools of servers, as they were last seen.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Catalogue {
    /// How long they stand for a server that is not connected.
    pub(super) lifetime_hours: u32,
    /// Whether names of fields and types of results are kept, for tools that do not say what they answer.
    pub(super) learn: bool,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self { lifetime_hours: 24, learn: true }
    }
}

/// `[results]`: what was too long to be shown.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Results {
    pub(super) keep_mib: u32,
    pub(super) keep_seconds: u32,
}

impl Default for Results {
    fn default() -> Self {
        Self { keep_mib: 64, keep_seconds: 3_600 }
    }
}

/// `[skills]`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Skills {
    /// Whether there are any.
    pub(super) enabled: bool,
    /// Folders of skills that are read and never written, such as a git checkout.
    pub(super) directories: Vec<String>,
}

impl Default for Skills {
    fn default() -> Self {
        Self { enabled: true, directories: Vec::new() }
    }
}

/// `[clients]`: what each AI client that comes in over HTTP may use.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Clients {
    pub(super) requests: String,
    pub(super) runs: String,
    pub(super) running: u32,
    pub(super) sessions: u32,
}

impl Default for Clients {
    fn default() -> Self {
        Self { requests: "1200/min".into(), runs: "120/min".into(), running: 8, sessions: 4 }
    }
}

/// `[service]`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Service {
    /// How long runs may take that are under way when it is to end.
    pub(super) drain_seconds: f64,
}

impl Default for Service {
    fn default() -> Self {
        Self { drain_seconds: 30.0 }
    }
}

/// `[metrics]`
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Metrics {
    /// Where figures and health are open to whoever reaches it: on this machine alone.
    #[serde(deserialize_with = "local_addresses")]
    pub(super) listen: Vec<Address>,
}

/// `[log]`
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Log {
    pub(super) format: Format,
}

/// `[tools]`: what models have besides the three tools.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    pub(super) health: bool,
}

/// Addresses that nobody on another machine reaches.
fn local_addresses<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Address>, D::Error> {
    use serde::de::Error;
    let written: Vec<String> = Deserialize::deserialize(from)?;
    let local = |written: &String| match written.parse().map_err(D::Error::custom)? {
        Address::Tcp(address) if !address.ip().is_loopback() => Err(D::Error::custom(format!(
            "{written} can be reached from other machines, and nobody has to prove who they are there: use a loopback \
             address or unix:/PATH, and from elsewhere ask for /metrics where AI clients come in, with a token"
        ))),
        address => Ok(address),
    };
    written.iter().map(local).collect()
}

impl Document {
    /// Reads and checks the file.
    pub(super) fn parse(source: &Source, surroundings: &Surroundings) -> Result<Self, Diagnostics> {
        let Read { mut document, misfits, root } =
            partial::read::<Self>(&source.text).map_err(|misfit| diagnostic(source, misfit))?;
        let mut faults: Vec<_> = misfits.into_iter().map(|misfit| diagnostic(source, misfit)).collect();
        faults.extend(document.out_of_range().map(|(key, range)| {
            let title = format!("{key} is out of range");
            fault(source, partial::span_of(&root, key), &title, format!("use {range}"))
        }));
        match dialects::read_own(source, surroundings) {
            Ok(servers) => document.servers = servers,
            Err(of_servers) => faults.extend(of_servers.0),
        }
        if faults.is_empty() { Ok(document) } else { Err(Diagnostics(faults)) }
    }

    /// Puts the home directory in place of a leading `~` of every path that is not expanded where it is used.
    pub(super) fn expand_home(&mut self, surroundings: &Surroundings) {
        let Self { python, javascript, audit, .. } = self;
        let paths =
            [&mut python.interpreter, &mut python.extension, &mut javascript.worker, &mut audit.directory];
        for path in paths.into_iter().flatten() {
            *path = surroundings.expand_home(&path.to_string_lossy());
        }
    }

    /// The tables that differ and are looked at only when Lockhouse starts.
    pub(super) fn that_need_a_restart(&self, other: &Self) -> Vec<&'static str> {
        let differ = [
            (self.limits != other.limits, "[limits]"),
            (self.pool != other.pool, "[pool]"),
            (self.sessions != other.sessions, "[sessions]"),
            (self.runs != other.runs, "[runs]"),
            (self.python != other.python, "[python]"),
            (self.javascript != other.javascript, "[javascript]"),
            (self.audit != other.audit, "[audit]"),
            (self.approvals != other.approvals, "[approvals]"),
            (self.catalogue != other.catalogue, "[catalogue]"),
            (self.results != other.results, "[results]"),
            (self.skills != other.skills, "[skills]"),
            (self.http != other.http, "[http]"),
            (self.clients != other.clients, "[clients]"),
            (self.service != other.service, "[service]"),
            (self.metrics != other.metrics, "[metrics]"),
            (self.log != other.log, "[log]"),
            (self.tools != other.tools, "[tools]"),
        ];
        differ.into_iter().filter(|(differs, _)| *differs).map(|(_, table)| table).collect()
    }

    /// What servers get by default.
    pub(super) fn server_limits(&self) -> ServerLimits {
        // A message holds its result twice where a server sends structured content and the same as text.
        let message_bytes_max = self.limits.frame_kib as usize * 1024 * 3;
        ServerLimits { message_bytes_max, ..ServerLimits::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> String {
        let source = Source { path: "config.toml".into(), text: text.into() };
        Document::parse(&source, &Surroundings::default()).expect_err("a fault").to_string()
    }

    #[test]
    fn an_empty_file_has_every_default() {
        let source = Source { path: "config.toml".into(), text: String::new() };
        assert!(Document::parse(&source, &Surroundings::default()).is_ok());
    }

    #[test]
    fn faults_show_no_line_of_a_server_and_no_value_of_its_environment() {
        for (text, told) in [
            ("[servers.x]\ncommand = 'a'\nenvv = {T = 'SEKRET'}\n", "config.toml:3"),
            (
                "[servers.x]\ncommand = 'a'\nenv = 'T=SEKRET, expected'\n",
                "servers.x: env: expected a table of strings",
            ),
            (
                "[servers.x]\ncommand = 'a'\nenv = {T = 'SEKRET', U = 3}\n",
                "servers.x: env: \"U\": expected a string",
            ),
            ("[limits]\n[servers.x.env]\nT = 'SEKRET\n", "config.toml:3"),
            (
                "servers = {x = {command = 'a', env = {T = ['SEKRET']}}}\n",
                "servers.x: env: \"T\": expected a string",
            ),
            ("servers = {'a b' = {command = 'a', env = {T = 'SEKRET'}}}\n", "config.toml:1"),
            ("[servers.x]\ncommand = 'a'\nenv = {T = 'SEKRET idle'}\n[pool]\nidle = 0\n", "config.toml:5"),
            ("[server.x]\ncommand = 'a'\nenv = {T = 'SEKRET'}\n", "unknown key `server`"),
        ] {
            let fault = faults(text);
            assert!(fault.contains(told) && !fault.contains("SEKRET"), "{text}: {fault}");
        }
    }

    #[test]
    fn faults_name_the_line_and_what_to_do() {
        let unknown = faults("[limits]\ntimeout = 3\n");
        assert!(unknown.contains("config.toml:2") && unknown.contains("timeout_seconds"), "{unknown}");
        let range = faults("[pool]\nidle = 0\n\n[limits]\nmemory_mib = 1\n");
        assert!(range.contains("1 to 64") && range.contains("config.toml:5"), "{range}");
        let name = faults("[servers.\"a b\"]\ncommand = \"x\"\n");
        assert!(name.contains("config.toml:1") && name.contains("A-Z"), "{name}");
    }
}
