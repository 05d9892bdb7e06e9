//! `config.toml` as Rust structs. Every key has a default, and an undeclared key is an error.

use std::path::PathBuf;

use lockhouse_audit::digest;
use lockhouse_base::text_files::read_source;
use lockhouse_policies::{Diagnostics, Source};
use lockhouse_upstream::ServerLimits;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::config_diagnostics::ConfigDiagnostics;
use super::dialects::{self, Author, ListedServer};
use super::error::ConfigError;
use super::file_permissions;
use super::files::{Files, config_path};
use super::files_table::FilesTable;
use super::http_tables::Http;
use super::keys::{DeclaredTable, table};
use super::multi_error_parser::{self, ReadOutcome};
use super::placeholders::{Environment, placeholder_files};
use super::tables::{
    Approvals, Audit, Catalogue, Clients, ClusterTable, JavaScript, LimitsTable, Log, Metrics, Page, Pool,
    Python, Results, Runs, Service, Sessions, Sharing, Skills, Tools, Users,
};

table! {
    /// the top level of the configuration file
    pub(super) struct ConfigToml = "" {
        /// AI clients' own files with servers, read in addition to the servers in this file: see Servers of AI
        /// clients
        servers_files: Vec<String> = Vec::new(), like "[\"~/.claude.json\"]";
        table limits: LimitsTable;
        table pool: Pool;
        table sessions: Sessions;
        table runs: Runs;
        table python: Python;
        table javascript: JavaScript;
        table audit: Audit;
        table approvals: Approvals;
        table catalogue: Catalogue;
        table results: Results;
        table skills: Skills;
        table http: Http;
        table clients: Clients;
        table service: Service;
        table sharing: Sharing;
        table users: Users;
        table cluster: ClusterTable;
        table metrics: Metrics;
        table page: Page;
        table log: Log;
        table tools: Tools;
        // Read by `dialects::read_own`, whose diagnostics show no secrets.
        beside #[serde(rename = "servers")] server_tables: IgnoredAny;
        beside #[serde(skip)] servers: Vec<ListedServer>;
        // The built-in server `files`.
        beside #[serde(skip)] files: FilesTable;
        // SHA-256 of the file.
        beside #[serde(skip)] digest: Option<String>;
        // Paths in `${file:…}` placeholders of the file.
        beside #[serde(skip)] referenced_files: Vec<String>;
        // What the file sets in the other tables, over which requirements are laid.
        beside #[serde(skip)] set: toml::Table;
    }
}

/// Loads the configuration file in use. If there is no configuration file, returns the defaults and an empty path.
pub(crate) fn load_document(
    files: &Files,
    environment: &Environment,
) -> Result<(ConfigToml, PathBuf), ConfigError> {
    match config_path(files) {
        Some(path) => {
            file_permissions::refuse_untrusted(&path, &files.owners())?;
            let source = read_source(&path)?;
            let mut document = ConfigToml::parse(&source, environment)?;
            document.digest = Some(digest::sha256_hex(&source.text));
            document.expand_home(environment);
            Ok((document, path))
        }
        None => Ok((ConfigToml::default(), PathBuf::new())),
    }
}

/// Returns what a configuration file sets, without its servers.
fn set_keys(text: &str, root: DeTable<'_>) -> toml::Table {
    let whole = Spanned::new(0..text.len(), root);
    // The same document was deserialized before.
    let mut set = toml::Table::deserialize(Deserializer::from(whole)).unwrap_or_default();
    set.remove("servers");
    set
}

/// Replaces the values of `table` by those of `over`, and keeps those that `over` does not have.
fn lay_over(table: &mut toml::Table, over: &toml::Table) {
    for (key, value) in over {
        match (table.get_mut(key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(over)) => lay_over(below, over),
            _ => drop(table.insert(key.clone(), value.clone())),
        }
    }
}

/// Why keys cannot be laid over a configuration.
#[derive(Debug, thiserror::Error)]
pub(super) enum MergeError {
    #[error("together with the configuration, {key} is out of range: use {use_instead}")]
    Contradiction { key: &'static str, use_instead: &'static str },
    #[error("its tables do not fit the configuration: {0}")]
    Invalid(#[from] toml::de::Error),
}

/// Two configuration keys whose values are each valid, but contradict each other.
struct Contradiction {
    key: &'static str,
    other: &'static str,
    use_instead: &'static str,
}

impl ConfigToml {
    /// Parses and validates the text of `config.toml`.
    ///
    /// # Errors
    /// All faults of the file.
    pub(super) fn parse(source: &Source, environment: &Environment) -> Result<Self, Diagnostics> {
        let declared = Self::spec();
        let diagnostics = ConfigDiagnostics::new(source, &declared);
        let ReadOutcome { mut document, errors, root } =
            multi_error_parser::read::<Self>(&source.text, &declared)
                .map_err(|error| diagnostics.for_field_error(error))?;
        let mut faults: Vec<_> = errors.into_iter().map(|error| diagnostics.for_field_error(error)).collect();
        faults.extend(document.out_of_range().into_iter().map(|wrong| {
            let span = multi_error_parser::span_of(&root, &wrong.key);
            diagnostics.for_declared_key(
                span,
                &format!("{} is out of range", wrong.key),
                format!("use {}", wrong.range),
            )
        }));
        faults.extend(document.contradictions().map(|wrong| {
            // If the first key has its default, the fault is reported at the other key.
            let span = multi_error_parser::span_of(&root, wrong.key)
                .or_else(|| multi_error_parser::span_of(&root, wrong.other));
            let (title, label) =
                (format!("{} is out of range", wrong.key), format!("use {}", wrong.use_instead));
            diagnostics.for_declared_key(span, &title, label)
        }));
        match dialects::read_own(source, &root, environment, Author::User) {
            Ok(own) => (document.servers, document.files) = (own.upstreams, own.files),
            Err(of_servers) => faults.extend(of_servers.0),
        }
        if !faults.is_empty() {
            return Err(Diagnostics(faults));
        }
        document.referenced_files = placeholder_files(&source.text).map(str::to_owned).collect();
        document.set = set_keys(&source.text, root);
        Ok(document)
    }

    /// Returns this configuration with the keys of `required` in place of its own. `required` has tables of the
    /// configuration only, each of them valid.
    ///
    /// # Errors
    /// A value that does not fit the remaining ones.
    pub(super) fn with_keys(&self, required: &toml::Table) -> Result<Self, MergeError> {
        let mut set = self.set.clone();
        lay_over(&mut set, required);
        let Self { servers, files, digest, referenced_files, server_tables, .. } = self.clone();
        let merged: Self = set.clone().try_into()?;
        let merged = Self { servers, files, digest, referenced_files, server_tables, set, ..merged };
        let contradiction = merged.contradictions().next();
        match contradiction {
            Some(Contradiction { key, use_instead, .. }) => {
                Err(MergeError::Contradiction { key, use_instead })
            }
            None => Ok(merged),
        }
    }

    /// Returns the contradictions between keys whose values are each in range.
    fn contradictions(&self) -> impl Iterator<Item = Contradiction> {
        let (limits, http) = (&self.limits, &self.http.limits);
        let code = (limits.code_kib >= limits.frame_kib).then_some(Contradiction {
            key: "limits.code_kib",
            other: "limits.frame_kib",
            use_instead: "less than frame_kib: code travels in one message",
        });
        let bodies = (!http.has_room_for_a_body(limits.code_kib)).then_some(Contradiction {
            key: "http.limits.bodies_mib",
            other: "http.limits.body_kib",
            use_instead: "at least body_kib: one body must have room",
        });
        code.into_iter().chain(bodies)
    }

    /// Replaces a leading `~` by the home directory in the paths of the tables `[python]`, `[javascript]`,
    /// `[audit]` and `[sharing]`.
    pub(super) fn expand_home(&mut self, environment: &Environment) {
        let Self { python, javascript, audit, sharing, .. } = self;
        let paths = [
            &mut python.interpreter,
            &mut python.extension,
            &mut python.environment,
            &mut javascript.worker,
            &mut audit.directory,
            &mut audit.forward_ca,
            &mut sharing.directory,
        ];
        for path in paths.into_iter().flatten() {
            *path = environment.expand_home(&path.to_string_lossy());
        }
    }

    /// Returns the names of the tables that differ between this configuration and `other`, if changes in them take
    /// effect only after a restart.
    pub(super) fn tables_requiring_restart(&self, other: &Self) -> Vec<&'static str> {
        // A reload replaces the workers with packages.
        let Python { packages, environment, packages_memory_mib, packages_idle_seconds, .. } = &self.python;
        let (packages, environment) = (packages.clone(), environment.clone());
        let (packages_memory_mib, packages_idle_seconds) = (*packages_memory_mib, *packages_idle_seconds);
        let python = other.python.clone();
        let python = Python { packages, environment, packages_memory_mib, packages_idle_seconds, ..python };
        self.tables_that_differ(&Self { python, ..other.clone() })
    }

    /// Returns the default limits for upstream servers, with the maximum message size that follows from `frame_kib` of
    /// `[limits]`.
    pub(super) fn server_limits(&self) -> ServerLimits {
        // A message contains its result twice if a server sends structured content and the same content as text.
        let message_bytes_max = self.limits.frame_kib as usize * 1024 * 3;
        ServerLimits { message_bytes_max, ..ServerLimits::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> String {
        let source = Source { path: "config.toml".into(), text: text.into() };
        ConfigToml::parse(&source, &Environment::default()).expect_err("a fault").to_string()
    }

    #[test]
    fn an_empty_file_has_every_default() {
        let source = Source { path: "config.toml".into(), text: String::new() };
        assert!(ConfigToml::parse(&source, &Environment::default()).is_ok());
    }

    #[test]
    fn faults_show_no_line_of_a_server_and_no_value_of_its_environment() {
        for (text, message) in [
            (
                "[audit]\nforward = [{ to = 'otlp+https://x', headers = { A = 'SEKRET' }, wrong = 1 }]",
                "config.toml:2",
            ),
            ("[audit]\nforward = [{ to = 'x', headers = { A = 'SEKRET' } }]", "config.toml:2"),
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
            assert!(fault.contains(message) && !fault.contains("SEKRET"), "{text}: {fault}");
        }
    }

    /// Tests that a fault is reported at its own key if the name of the key also occurs in another key, a comment or a
    /// string.
    #[test]
    fn a_fault_names_the_line_of_its_own_key() {
        for (text, location) in [
            ("[sessions]\nidle_seconds = 5\n[pool]\nidle = 0\n", "config.toml:4:8"),
            ("[pool] # idle\n# idle = 0\nrunning = 4\nidle = 0\n", "config.toml:4:8"),
            ("[clients]\nrunning = 3\n[pool]\nrunning = 0\n", "config.toml:4:11"),
            ("[audit]\nredact = [\n'idle = 0',\n]\n[pool]\nidle = 0\n", "config.toml:6:8"),
            ("pool.idle = 0\n", "config.toml:1:13"),
            ("[pool]\n# for each environment of the servers\nidle = 0\n", "config.toml:3:8"),
            ("[limits]\nframe_kib = 100\n", "config.toml:2:13"),
            ("[http.limits]\nbody_kib = 20000\nbodies_mib = 2\n", "config.toml:3:14"),
        ] {
            let message = faults(text);
            assert!(message.contains(&format!(" {location}\n")), "{text}{message}");
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
