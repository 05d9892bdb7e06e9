//! The settings that the configuration gives to the components, and the steps of loading them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lockhouse_access::AuthSettings;
use lockhouse_approvals::ApproverKind;
use lockhouse_audit as audit;
use lockhouse_audit::{ConfiguredFile, digest};
use lockhouse_audit_forward::ForwardSettings;
use lockhouse_cluster::ClusterSettings;
use lockhouse_engine::supervisor::{self, MissingProgram};
use lockhouse_front::http::{HttpSettings, ListenAddress, TlsVersion};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Endpoint, ServerDefinition, ServerLimits, StoragePaths, UserCredentials};

use crate::config_toml::ConfigToml;
use crate::configured_files::configured_files;
use crate::engine_sharing::EngineSharing;
use crate::error::ConfigError;
use crate::file_permissions::ReadableSecret;
use crate::files::Files;
use crate::package_spec::PackageSpec;
use crate::placeholders::{Environment, UsedEnvironment};
use crate::requirements::{RequiredParts, Requirements};
use crate::secret_detection::secrets_directory;
use crate::skipped_server::SkippedServer;
use crate::user_part::{UserPart, confine};
use crate::{
    client_access, cluster_settings, code_trust, deprecated_transport, engine_settings, file_permissions,
    files_table, forwarding, own_places, policy_files, search_paths, tool_decoding, users_table,
    worker_pools,
};

/// The complete, validated configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    pub engine: supervisor::EngineSettings,
    /// Upstream servers that are configured but not used, with the reason for each.
    pub skipped_servers: Vec<SkippedServer>,
    /// How AI clients authenticate over HTTP.
    pub access: AuthSettings,
    pub http: HttpSettings,
    /// Addresses on which metrics and health endpoints are served without authentication.
    pub metrics: Vec<ListenAddress>,
    /// Where the audit log is forwarded to.
    pub audit_forward: ForwardSettings,
    pub(crate) document: ConfigToml,
    /// Path of the configuration file; empty if there is none.
    pub(crate) path: PathBuf,
    /// The parts of the environment on which the definitions of servers depend.
    pub(crate) used_environment: UsedEnvironment,
    pub(crate) user: Arc<UserPart>,
    pub(crate) requirements: Requirements,
}

impl Settings {
    /// Returns the user as whom workers run. `None` if they run as the user of this process, because that is not root.
    #[must_use]
    pub fn user_of_workers(&self) -> Option<u32> {
        worker_pools::user_of_workers(&self.document)
    }

    /// Loads the configuration file, the servers files (AI clients' files that list MCP servers) and the
    /// administrator's requirements.
    ///
    /// # Errors
    /// [`ConfigError`] for the first file that cannot be used, with all faults of that file.
    pub fn load(files: &Files) -> Result<Self, ConfigError> {
        let user = UserPart::load(files)?;
        let requirements = Requirements::load(&user.environment)?;
        Self::combine(files, user, requirements)
    }

    /// Combines the user's part of the configuration with the administrator's requirements.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub(super) fn combine(
        files: &Files,
        user: UserPart,
        requirements: Requirements,
    ) -> Result<Self, ConfigError> {
        let UserPart { path, environment, .. } = &user;
        let document = requirements.lay_over(&user.document, environment)?;
        code_trust::refuse_untrusted_code(&document, &files.owners())?;
        let AdmittedServers { servers, skipped, refused, users } = admit(&user, &document, &requirements);
        let own = own_places::own_places(files, &document, path, environment, &servers, &requirements)?;
        let mut engine = supervisor::EngineSettings {
            own_policy: policy_files::own_policy(files),
            proposal: policy_files::proposal_files(files),
            refused,
            digest: combined_digest(&user, &requirements),
            requirements_digest: requirements.digest(),
            stop: requirements.stop().map(Arc::from),
            ..engine_settings::engine_settings(&document, path, environment, servers, own)?
        };
        engine.places.users = users;
        if files.person.is_some() {
            // What an AI client says that its user said is what the agent of that user says.
            engine.approvals.through = ApproverKind::Local;
        }
        let access = client_access::access_settings(&document, path, environment)?;
        cluster_settings::cluster_settings(&document, path, environment)?;
        let mut http = document.http.settings(
            client_access::client_limits(&document.clients).requests,
            document.limits.code_kib,
            path,
            environment,
        );
        http.login_redirect = engine.places.users.as_ref().and_then(UserCredentials::login_redirect);
        let metrics = document.metrics.listen.clone();
        let mut audit_forward = forwarding::forward_settings(&document.audit, path)?;
        // Those of a sink may be readable for its account alone.
        if document.audit.sink.is_none() {
            audit_forward = forwarding::with_credentials(audit_forward, &document.audit, environment)?;
        }
        let (used_environment, path) = (environment.used(), path.clone());
        Ok(Self {
            engine,
            skipped_servers: skipped,
            access,
            http,
            metrics,
            audit_forward,
            document,
            path,
            used_environment,
            user: Arc::new(user),
            requirements,
        })
    }

    /// Returns these settings with other requirements. No file of the user is read: neither its content nor its absence can
    /// delay or prevent requirements. Settings that take effect only after a restart stay.
    ///
    /// # Errors
    /// [`ConfigError::Unusable`] if the requirements do not fit the configuration.
    pub(super) fn with_requirements(&self, requirements: Requirements) -> Result<Self, ConfigError> {
        let user = self.user.clone();
        let document = requirements.lay_over(&user.document, &user.environment)?;
        let AdmittedServers { servers, skipped, refused, users } = admit(&user, &document, &requirements);
        let own = self.engine.host_files.own.clone();
        let host_files = files_table::settings(&document.files, &servers, &user.environment, own);
        let packages = match document.python == self.document.python {
            true => self.engine.packages.clone(),
            false => worker_pools::python_packages(&document, &self.engine.limits),
        };
        let engine = supervisor::EngineSettings {
            servers,
            host_files: host_files.ok_or(ConfigError::NoStateDirectory)?,
            refused,
            packages,
            digest: combined_digest(&user, &requirements),
            requirements_digest: requirements.digest(),
            stop: requirements.stop().map(Arc::from),
            places: StoragePaths { users, ..self.engine.places.clone() },
            ..self.engine.clone()
        };
        let used_environment = user.environment.used();
        Ok(Self {
            engine,
            skipped_servers: skipped,
            document,
            used_environment,
            user,
            requirements,
            ..self.clone()
        })
    }

    /// Returns the names of the tables in which a process that was started with these settings does not meet the
    /// requirements of `other` before it restarts.
    pub fn tables_required_otherwise(&self, other: &Self) -> Vec<&'static str> {
        // Both were combined before.
        let required = other.requirements.lay_over(&self.document, &self.user.environment);
        required
            .map_or_else(|_| vec!["[limits]"], |required| self.document.tables_requiring_restart(&required))
    }

    /// Returns the files whose changes the audit log records, whether they exist or not.
    pub fn configured_files(&self, files: &Files) -> Vec<ConfiguredFile> {
        configured_files(files, &self.requirements)
    }

    /// Whether the requirements set a key of the configuration, so that no option replaces it.
    pub fn requires_key(&self, table: &str, key: &str) -> bool {
        self.requirements.set_key(table, key)
    }

    /// Returns how this host takes part in a cluster, with its secret. `None` if it does not.
    ///
    /// # Errors
    /// [`ConfigError::Unusable`] if the secret cannot be read.
    pub fn cluster(&self) -> Result<Option<ClusterSettings>, ConfigError> {
        let (document, path, environment) = (&self.document, &self.path, &self.user.environment);
        let settings = cluster_settings::cluster_settings(document, path, environment)?;
        let with_secrets = |settings| cluster_settings::with_secrets(settings, document, path, environment);
        settings.map(with_secrets).transpose()
    }

    /// Returns which parts of a managed host the administrator requires.
    pub fn required_parts(&self) -> RequiredParts {
        self.requirements.required_parts()
    }

    /// Returns why the administrator has stopped Lockhouse. `None` if it is not stopped.
    pub fn stop_reason(&self) -> Option<&str> {
        self.engine.stop.as_deref()
    }

    /// Loads the configuration like [`Self::load`], but with other Python packages in another virtual environment.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_with_packages(
        files: &Files,
        packages: &[PackageSpec],
        environment: &Path,
    ) -> Result<Self, ConfigError> {
        let mut settings = Self::load(files)?;
        if settings.requirements.set_key("python", "packages") {
            return Err(ConfigError::Determined { key: "packages of [python]" });
        }
        let python = &mut settings.document.python;
        (python.packages, python.environment) = (packages.to_vec(), Some(environment.to_owned()));
        let limits = settings.engine.limits;
        settings.engine.packages = worker_pools::python_packages(&settings.document, &limits);
        Ok(settings)
    }

    /// Returns the Python packages that programs can import.
    pub fn python_packages(&self) -> &[PackageSpec] {
        &self.document.python.packages
    }

    /// Returns the virtual environment with the packages, if it is configured and not managed by `lockhouse python`.
    pub fn python_environment(&self) -> Option<&Path> {
        self.document.python.environment.as_deref()
    }

    /// Returns the path of the Python interpreter.
    ///
    /// # Errors
    /// There is no interpreter.
    pub fn python_interpreter(&self) -> Result<PathBuf, MissingProgram> {
        search_paths::python_interpreter(self.document.python.interpreter.as_deref())
    }

    /// Finds files with secrets that other Unix users can read: keys, tokens, and files that placeholders in the
    /// configuration name.
    pub fn readable_secrets(&self) -> Vec<ReadableSecret> {
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
    pub fn transport_warnings(&self) -> Vec<String> {
        deprecated_transport::sse_warnings(&self.engine.servers).collect()
    }

    /// Returns warnings about the HTTP service.
    pub fn http_warnings(&self) -> Vec<String> {
        let is_old = self.http.tls.as_ref().is_some_and(|tls| tls.minimum == TlsVersion::Tls12);
        let warning = "tls_minimum = \"1.2\" of [http]: the process with the private key signs whatever the process that speaks \
                       HTTP sends it, because a handshake of TLS 1.2 cannot be told from other bytes";
        is_old.then(|| warning.to_owned()).into_iter().collect()
    }

    /// Returns warnings about secrets that other Unix users can read, which are files and arguments of servers, and about
    /// deprecated transports.
    pub fn warnings(&self) -> Vec<String> {
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

    /// Whether the configuration says that `lockhouse serve` over standard input and output shares an engine with other
    /// clients.
    pub fn wants_shared_engine(&self) -> bool {
        self.document.sharing.engine == EngineSharing::Shared
    }

    /// Returns a server with `share = false`, which prevents that its engine is shared.
    pub fn unshared_server(&self) -> Option<&ServerName> {
        self.engine.servers.iter().find(|(_, server)| !server.is_shared).map(|(name, _)| name)
    }

    /// Whether clients share an engine with these settings.
    pub fn shares_engine(&self) -> bool {
        self.wants_shared_engine() && self.unshared_server().is_none()
    }

    /// Returns how long an engine that clients share keeps running without clients.
    pub fn engine_idle_time(&self) -> Duration {
        Duration::from_secs_f64(self.document.sharing.idle_seconds)
    }

    /// Returns the names of the configuration tables that differ between these settings and `other`, if changes in them
    /// take effect only after a restart.
    pub fn tables_requiring_restart(&self, other: &Self) -> Vec<&'static str> {
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

/// The configured servers after the requirements were applied.
struct AdmittedServers {
    servers: BTreeMap<ServerName, ServerDefinition>,
    skipped: Vec<SkippedServer>,
    /// One message for each server that the requirements do not permit.
    refused: Vec<String>,
    /// `None` if no server uses credentials of users.
    users: Option<UserCredentials>,
}

/// Applies the requirements to the servers of the user's part. `document` is its configuration with the required keys.
fn admit(user: &UserPart, document: &ConfigToml, requirements: &Requirements) -> AdmittedServers {
    let (mut configured, limits) = (user.servers.clone(), document.server_limits());
    for definition in configured.values_mut() {
        definition.limits.message_bytes_max = limits.message_bytes_max;
    }
    if let Some(directory) = &document.sharing.directory {
        start_in(&user.path.parent().unwrap_or(Path::new("")).join(directory), &mut configured);
    }
    let (mut servers, refused) = requirements.apply(configured, limits, &user.environment);
    if user.environment.person.is_some() {
        confine(&mut servers);
    }
    tool_decoding::apply(&mut servers, &document.tools.decode);
    let mut skipped = user.skipped.clone();
    skipped.extend(refused.iter().map(SkippedServer::from));
    let users = users_table::user_credentials(&document.users, &user.environment, &mut servers, &mut skipped);
    AdmittedServers { servers, skipped, refused: refused.iter().map(ToString::to_string).collect(), users }
}

/// Returns the SHA-256 of the configuration file, the servers files and the requirements files. `None` if there is no file.
fn combined_digest(user: &UserPart, requirements: &Requirements) -> Option<String> {
    let digests: Vec<String> = user.digests.iter().chain(requirements.digests()).cloned().collect();
    digest::combined_sha256(&digests)
}

/// The servers that may be used, by name, and the names of the others with the reasons.
type PermittedServers = (BTreeMap<ServerName, ServerDefinition>, Vec<(ServerName, String)>);

/// Applies the administrator's requirements to servers that are not in the configuration yet.
///
/// # Errors
/// [`ConfigError`] if a requirements file cannot be used.
pub fn apply_requirements(
    servers: BTreeMap<ServerName, ServerDefinition>,
    environment: &Environment,
) -> Result<PermittedServers, ConfigError> {
    let requirements = Requirements::load(environment)?;
    let (mut admitted, refused) = requirements.apply(servers.clone(), ServerLimits::default(), environment);
    admitted.retain(|name, _| servers.contains_key(name));
    let refused = refused.iter().map(|refusal| (refusal.server().clone(), refusal.reason()));
    Ok((admitted, refused.collect()))
}
