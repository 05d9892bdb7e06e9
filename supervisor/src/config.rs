//! Loads the configuration: reads the files, validates them as a whole, and converts them into the settings of each
//! component.

mod client_access;
mod client_entry;
mod client_files;
mod code_trust;
mod config_diagnostics;
mod config_edit;
mod config_toml;
mod deprecated_transport;
mod dialects;
mod documentation;
mod engine_path;
mod engine_settings;
mod engine_sharing;
mod entry_moves;
mod env_file;
mod error;
mod file_permissions;
mod files;
mod files_table;
mod http_tables;
mod interpreter_places;
mod json_edit;
mod keys;
mod module_name;
mod multi_error_parser;
mod oauth_settings;
mod own_places;
mod package_spec;
mod placeholders;
mod policy_files;
mod process_rights;
mod python_environment;
mod redacted_diagnostic;
mod requirements;
mod search_paths;
mod secret_detection;
mod server_entry;
mod server_keys;
mod server_programs;
mod server_table;
mod servers;
mod setup_digest;
mod shell_quoting;
mod single_tables;
mod skip_reason;
mod skipped_server;
mod tables;
mod toml_tables;
mod tool_decoding;
mod unique_servers;
mod unresolved_server;
mod worker_pools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_access::AuthSettings;
use lockhouse_audit as audit;
use lockhouse_audit::digest;
use lockhouse_base::directories;
use lockhouse_base::text_files::read_source;
use lockhouse_engine::supervisor::{self, MissingProgram};
use lockhouse_front::http::{HttpSettings, ListenAddress};
use lockhouse_policies::Source;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Endpoint, ServerDefinition, ServerLimits};

use requirements::Requirements;

pub(crate) use client_entry::{
    Insertion, LaunchCommand, UnsuitableEntry, approve_run_code, insert, own_place,
    restore_code_mode_setting, unsuitable_entries,
};
pub(crate) use client_files::{AiClient, project_files};
pub(crate) use config_edit::{ConfigEdit, PreparedEdit};
pub(crate) use deprecated_transport::sse_warning;
pub(crate) use dialects::{ListedServer, Listing};
pub(crate) use documentation::{json_schema, packaged_configuration};
pub(crate) use entry_moves::{EntryPlace, put_back, take_out};
pub(crate) use error::ConfigError;
pub(crate) use file_permissions::ReadableSecret;
pub(crate) use files::{ExposeMode, Files};
pub(crate) use package_spec::{InvalidPackage, PackageSpec};
use placeholders::UsedEnvironment;
pub(crate) use placeholders::{Environment, PlaceholderError};
pub(crate) use policy_files::{
    editable_policy, find_policy, load_policy, policy_path, restrict_by_requirements,
};
pub(crate) use python_environment::{environment_in_use, managed_directory};
pub(crate) use search_paths::{find_program, installed_file};
pub(crate) use secret_detection::{
    looks_secret, replace_secrets, replace_secrets_in_arguments, store_secret,
};
pub(crate) use server_entry::ServerEntry;
pub(crate) use server_table::{sandbox_table, to_server_table};
pub(crate) use setup_digest::{Setup, SetupParts};
pub(crate) use shell_quoting::shell_quote;
pub(crate) use single_tables::{
    PageSettings, ResultBounds, load_audit_settings, load_page_settings, load_result_bounds,
    load_skill_settings, load_token_file, log_format,
};
pub(crate) use skip_reason::SkipReason;
pub(crate) use skipped_server::SkippedServer;
pub(crate) use unique_servers::normalize_server_name;
pub(crate) use unresolved_server::UnresolvedServer;

/// The complete, validated configuration.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) engine: supervisor::Settings,
    /// Upstream servers that are configured but not used, with the reason for each.
    pub(crate) skipped_servers: Vec<SkippedServer>,
    /// How AI clients authenticate over HTTP.
    pub(crate) access: AuthSettings,
    pub(crate) http: HttpSettings,
    /// Addresses on which metrics and health endpoints are served without authentication.
    pub(crate) metrics: Vec<ListenAddress>,
    document: config_toml::ConfigToml,
    /// Path of the configuration file; empty if there is none.
    path: PathBuf,
    /// The parts of the environment on which the definitions of servers depend.
    used_environment: UsedEnvironment,
}

impl Settings {
    /// Loads the configuration file, the servers files (AI clients' files that list MCP servers) and the
    /// administrator's requirements.
    ///
    /// # Errors
    /// [`ConfigError`] for the first file that cannot be used, with all faults of that file.
    pub(crate) fn load(files: &Files) -> Result<Self, ConfigError> {
        let owners = files.owners();
        let environment = Environment { owners: owners.clone(), ..Environment::from_process() };
        let (document, path) = load_document(files, &environment)?;
        let mut collector =
            servers::ServerCollector::new(&environment, document.server_limits(), files.expose.exposure());
        for file in &files.servers {
            collector.add_file(file)?;
        }
        collector.add_servers(&path.display().to_string(), document.servers.clone());
        for file in &document.servers_files {
            collector.add_configured_file(file, &path)?;
        }
        code_trust::refuse_untrusted_code(&document, &owners)?;
        let requirements = Requirements::load(document.server_limits(), &environment)?;
        let digests: Vec<String> = document.digest.iter().chain(collector.digests()).cloned().collect();
        let (mut servers, mut skipped_servers) = collector.into_servers();
        if let Some(directory) = &document.sharing.directory {
            start_in(&path.parent().unwrap_or(Path::new("")).join(directory), &mut servers);
        }
        let (mut servers, refused) = requirements.apply(servers);
        tool_decoding::apply(&mut servers, &document.tools.decode);
        skipped_servers.extend(refused.iter().map(SkippedServer::from));
        let own = own_places::own_places(files, &document, &path, &environment, &servers)?;
        let engine = supervisor::Settings {
            own_policy: policy_files::own_policy(files),
            refused: refused.iter().map(ToString::to_string).collect(),
            digest: digest::combined_sha256(&digests),
            ..engine_settings::engine_settings(&document, &path, &environment, servers, own)?
        };
        let access = client_access::access_settings(&document, &path, &environment)?;
        let http = document.http.settings(
            client_access::client_limits(&document.clients).requests,
            document.limits.code_kib,
            &path,
            &environment,
        );
        let metrics = document.metrics.listen.clone();
        let used_environment = environment.used();
        Ok(Self { engine, skipped_servers, access, http, metrics, document, path, used_environment })
    }

    /// Loads the configuration like [`Self::load`], but with other Python packages in another virtual environment.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub(crate) fn load_with_packages(
        files: &Files,
        packages: &[PackageSpec],
        environment: &Path,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::load(files)?;
        let python = &mut settings.document.python;
        (python.packages, python.environment) = (packages.to_vec(), Some(environment.to_owned()));
        let limits = settings.engine.limits;
        settings.engine.packages = worker_pools::python_packages(&settings.document, &limits);
        Ok(settings)
    }

    /// Returns the Python packages that programs can import.
    pub(crate) fn python_packages(&self) -> &[PackageSpec] {
        &self.document.python.packages
    }

    /// Returns the virtual environment with the packages, if it is configured and not managed by `lockhouse python`.
    pub(crate) fn python_environment(&self) -> Option<&Path> {
        self.document.python.environment.as_deref()
    }

    /// Returns the path of the Python interpreter.
    ///
    /// # Errors
    /// There is no interpreter.
    pub(crate) fn python_interpreter(&self) -> Result<PathBuf, MissingProgram> {
        search_paths::python_interpreter(self.document.python.interpreter.as_deref())
    }

    /// Finds files with secrets that other Unix users can read: keys, tokens, and files that placeholders in the
    /// configuration name.
    pub(crate) fn readable_secrets(&self) -> Vec<ReadableSecret> {
        let environment = Environment::from_process();
        let stored =
            secrets_directory().into_iter().flat_map(|directory| file_permissions::files_in(&directory));
        let keys = audit::key_files(&self.engine.audit.keys);
        let tokens = client_access::token_file(&self.document.http, &self.path, &environment);
        let tokens = tokens.map(|tokens| tokens.path().to_owned());
        let beside = self.path.parent().unwrap_or(Path::new(""));
        let referenced = self.document.referenced_files.iter();
        let referenced = referenced.map(|path| beside.join(environment.expand_home(path)));
        let mut files: Vec<PathBuf> = stored.chain(keys).chain(tokens).chain(referenced).collect();
        files.sort_unstable();
        files.dedup();
        file_permissions::readable_secrets(files.into_iter())
    }

    /// Returns warnings about servers over the deprecated transport HTTP+SSE.
    pub(crate) fn transport_warnings(&self) -> Vec<String> {
        deprecated_transport::sse_warnings(&self.engine.servers).collect()
    }

    /// Returns warnings about secrets that other Unix users can read, which are files and arguments of servers, and about
    /// deprecated transports.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let files = self.readable_secrets();
        let in_arguments = self.engine.servers.iter().filter(|(_, server)| server.has_secret_arguments);
        let in_arguments = in_arguments.map(|(name, server)| {
            format!(
                "server {name} ({}) has a secret in its arguments, which every account of this machine can read while it runs: pass it in `env` if the server accepts that",
                server.origin
            )
        });
        let secrets = files.iter().map(ReadableSecret::to_string).chain(in_arguments);
        secrets.chain(self.transport_warnings()).collect()
    }

    /// Returns the names of the configuration tables that differ between these settings and `other`, if changes in them
    /// take effect only after a restart.
    pub(crate) fn tables_requiring_restart(&self, other: &Self) -> Vec<&'static str> {
        self.document.tables_requiring_restart(&other.document)
    }
}

/// Sets the directory in which servers without `cwd` are started.
fn start_in(directory: &Path, servers: &mut BTreeMap<ServerName, ServerDefinition>) {
    for definition in servers.values_mut() {
        if let Endpoint::Stdio(command) = &mut definition.endpoint {
            command.directory.get_or_insert_with(|| directory.to_owned());
        }
    }
}

/// Loads the configuration file in use. If there is no configuration file, returns the defaults and an empty path.
fn load_document(
    files: &Files,
    environment: &Environment,
) -> Result<(config_toml::ConfigToml, PathBuf), ConfigError> {
    match config_path(files) {
        Some(path) => {
            file_permissions::refuse_untrusted(&path, &files.owners())?;
            let source = read_source(&path)?;
            let mut document = config_toml::ConfigToml::parse(&source, environment)?;
            document.digest = Some(digest::sha256_hex(&source.text));
            document.expand_home(environment);
            Ok((document, path))
        }
        None => Ok((config_toml::ConfigToml::default(), PathBuf::new())),
    }
}

/// Returns the path of the configuration file in use, if one exists.
pub(crate) fn config_path(files: &Files) -> Option<PathBuf> {
    search_paths::config_file(files.config.as_deref(), "config.toml")
}

/// The servers that may be used, by name, and the names of the others with the reasons.
pub(crate) type AdmittedServers = (BTreeMap<ServerName, ServerDefinition>, Vec<(ServerName, String)>);

/// Applies the administrator's requirements to servers that are not in the configuration yet.
///
/// # Errors
/// [`ConfigError`] if a requirements file cannot be used.
pub(crate) fn apply_requirements(
    servers: BTreeMap<ServerName, ServerDefinition>,
    environment: &Environment,
) -> Result<AdmittedServers, ConfigError> {
    let requirements = Requirements::load(ServerLimits::default(), environment)?;
    let (mut admitted, refused) = requirements.apply(servers.clone());
    admitted.retain(|name, _| servers.contains_key(name));
    let refused = refused.iter().map(|refusal| (refusal.server().clone(), refusal.reason()));
    Ok((admitted, refused.collect()))
}

/// Lists the MCP servers in an AI client's configuration file, without resolving placeholders. Returns `None` if the
/// file has no section for servers.
pub(crate) fn list_servers(path: &Path, environment: &Environment) -> Result<Option<Listing>, ConfigError> {
    Ok(dialects::read(&read_source(path)?, environment)?)
}

/// Whether an AI client's configuration file has a server entry that starts Lockhouse, under a name other than
/// `lockhouse`. `false` if the file cannot be parsed.
pub(crate) fn lists_lockhouse(source: &Source, environment: &Environment) -> bool {
    let Ok(Some(listing)) = dialects::read(source, environment) else { return false };
    let others = listing.servers.into_iter().filter(|listed| listed.name != client_entry::NAME);
    others.filter_map(|listed| listed.entry.ok()).any(|entry| {
        let resolved = entry.resolve(environment, ServerLimits::default(), String::new());
        resolved == Err(SkipReason::LockhouseItself)
    })
}

/// Returns the directory in which Lockhouse stores secrets as files. Placeholders in the configuration name these
/// files, so that the configuration holds no secret in plain text. `None` if the user's configuration directory is
/// not known.
pub(crate) fn secrets_directory() -> Option<PathBuf> {
    Some(directories::configuration()?.join("secrets"))
}

/// Returns those of the given secret files that other Unix users can read.
pub(crate) fn readable_by_others<'p>(files: impl Iterator<Item = &'p Path>) -> Vec<ReadableSecret> {
    file_permissions::readable_secrets(files.map(Path::to_owned))
}
