//! Enforces the administrator's requirements, `/etc/lockhouse/requirements.toml`, on every configuration of this
//! machine.
//!
//! A server is used only if every requirements file permits it. Servers are identified by name *and* by program or address,
//! so that no server can impersonate another. Keys of the configuration that a file sets replace those of the user; of
//! several files, the one in `/etc` decides.

mod address;
mod admission;
mod denial;
mod file_trust;
mod identity;
mod managed_host;
mod reader;
mod required_parts;
mod required_tables;
mod requirements_toml;
mod system_engine;
mod watched_files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockhouse_audit::digest;
use lockhouse_base::path_trust::{TrustedOwners, is_in_user_namespace};
use lockhouse_base::text_files::read_source;
use lockhouse_policies::{Diagnostics, Policy, SourceLocation};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Endpoint, ServerDefinition, ServerLimits};
use nix::unistd::geteuid;

use super::config_toml::ConfigToml;
use super::dialects::ListedServer;
use super::error::ConfigError;
use super::every_server::EveryServer;
use super::files::ExposeMode;
use super::files_table::FilesTable;
use super::placeholders::{Environment, account_home};
use admission::Admission;
use identity::{Identity, Mismatch};
pub use required_parts::RequiredParts;
use requirements_toml::{ApprovedServer, DeniedServer};
pub use system_engine::SystemEngine;
pub(crate) use watched_files::{FileState, WatchedFiles};

const FILE: &str = "/etc/lockhouse/requirements.toml";
/// The environment variable with the path of a further requirements file. That file applies in addition to the one in
/// `/etc`, so setting the variable can only restrict.
const FURTHER_FILE: &str = "LOCKHOUSE_REQUIREMENTS";

/// The requirements files that apply to this process, the one in `/etc` first.
#[derive(Clone, Debug, Default)]
pub(super) struct Requirements(Vec<Arc<Requirement>>);

/// The requirements in one requirements file of the administrator.
#[derive(Debug)]
pub(super) struct Requirement {
    path: String,
    /// The SHA-256 of the file.
    digest: String,
    /// The only servers that may be used. `None` if the file does not fix the servers.
    fixed: Option<Vec<ListedServer>>,
    /// The approved servers: only servers that match an entry may be used. `None` if the file does not require approved
    /// servers.
    approved: Option<Vec<ApprovedServer>>,
    denied: Vec<DeniedServer>,
    policy: Option<RequiredPolicy>,
    /// Why nothing may run. `None` if code may run.
    stop: Option<String>,
    /// Whether only the system's engines run code for people.
    has_system_engine: bool,
    /// Whether no server with a sandbox is started if the kernel cannot enforce the sandbox.
    requires_sandbox: bool,
    /// Who can use each server that the file does not fix.
    expose: Option<ExposeMode>,
    /// The table of the built-in server `files`.
    files: Option<FilesTable>,
    every: Option<EveryServer>,
    /// The keys of the configuration that the file sets.
    tables: toml::Table,
}

/// The policy that a requirements file names.
#[derive(Debug)]
struct RequiredPolicy {
    path: PathBuf,
    /// The error for a policy that does not exist.
    missing: Diagnostics,
}

/// A requirements file with the servers that it fixes, without placeholders.
struct ResolvedRequirement<'r> {
    requirement: &'r Requirement,
    fixed: Option<BTreeMap<ServerName, ServerDefinition>>,
}

/// A configured server that the requirements do not permit.
#[derive(Clone, Debug)]
pub struct ForbiddenServer {
    server: ServerName,
    origin: String,
    reason: RefusalReason,
}

impl ForbiddenServer {
    pub(super) fn server(&self) -> &ServerName {
        &self.server
    }

    pub(super) fn reason(&self) -> String {
        self.reason.to_string()
    }

    /// Returns the name and origin of the refused server, and the reason for the refusal.
    pub(super) fn parts(&self) -> (String, String, String) {
        (self.server.to_string(), self.origin.clone(), self.reason.to_string())
    }
}

impl std::fmt::Display for ForbiddenServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "server {} of {} is left out: {}", self.server, self.origin, self.reason)
    }
}

/// Why a requirements file does not permit a server.
#[derive(Clone, Debug, thiserror::Error)]
enum RefusalReason {
    #[error("{0} lists the permitted servers, and it is not one of them")]
    NotListed(String),
    #[error("{place} lists this server with another command or url")]
    ListedOtherwise { place: String },
    #[error("not approved by {0}: no [[approved]] entry has its name")]
    NameNotApproved(String),
    #[error("not approved by {place}: {mismatch}")]
    NotApproved { place: SourceLocation, mismatch: Mismatch },
    #[error("denied by {0}")]
    Denied(SourceLocation),
    #[error("its env sets {variable}, which {path} permits no server")]
    Variable { path: String, variable: String },
    #[error("{0} has stopped Lockhouse")]
    Stopped(String),
    #[error(
        "over HTTP+SSE, a server itself names a URL for messages, and {0} decides about servers by their URL: use streamable HTTP"
    )]
    NamesUrl(String),
}

impl Requirements {
    /// Loads all requirements files. A file that an untrusted user could have written is an error. Root is trusted; for
    /// the file that [`FURTHER_FILE`] names, so is the user of this process.
    ///
    /// # Errors
    /// [`ConfigError`] if a file is untrusted, unreadable or invalid, or if the one in `/etc` has disappeared since this
    /// host was managed. Lockhouse then serves nothing.
    pub(super) fn load(environment: &Environment) -> Result<Self, ConfigError> {
        Self::default().load_again(environment)
    }

    /// Loads the requirements files again. What a file said that has disappeared stays in force.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub(super) fn load_again(&self, environment: &Environment) -> Result<Self, ConfigError> {
        // The variable HOME is the user's choice.
        let home = account_home(geteuid()).or_else(|| environment.home.clone());
        let environment = &Environment { home, ..environment.clone() };
        let mut loaded = Vec::new();
        for PossibleFile { path, owners, is_optional } in possible_files()? {
            let exists = file_trust::trusted_file_exists(&path, &owners)?;
            let name = path.display().to_string();
            let former = self.0.iter().find(|former| former.path == name);
            match former {
                Some(former) if !exists => loaded.push(former.clone()),
                _ if !exists && is_optional => {
                    if managed_host::is_managed() {
                        return Err(ConfigError::Unmanaged { path, marker: managed_host::MARKER });
                    }
                }
                _ => loaded.push(Arc::new(requirements_toml::parse(&read_source(&path)?, environment)?)),
            }
        }
        Ok(Self(loaded))
    }

    /// Returns the files that decide about what [`Self::load`] returns, as they are now.
    pub(super) fn watch() -> Result<WatchedFiles, ConfigError> {
        let mut watched = WatchedFiles::default();
        possible_files()?.iter().for_each(|file| watched.add(&file.path));
        Ok(watched)
    }

    /// Makes it known on this host that requirements apply to it, if the one in `/etc` does.
    pub(super) fn mark_managed(&self) {
        if self.0.iter().any(|requirement| requirement.path == FILE) {
            managed_host::mark_managed();
        }
    }

    /// Loads the policies that requirements files name, and adds their files to `watched`. Each one is evaluated together
    /// with the user's policy, and can only restrict it.
    ///
    /// # Errors
    /// [`ConfigError`] if a policy is missing, untrusted or invalid. Lockhouse then permits no calls at all.
    pub(super) fn policies(&self, watched: &mut WatchedFiles) -> Result<Vec<Policy>, ConfigError> {
        let mut policies = Vec::new();
        for requirement in &self.0 {
            let Some(RequiredPolicy { path, missing }) = &requirement.policy else { continue };
            watched.add(path);
            if !file_trust::trusted_file_exists(path, &owners_of(&requirement.path))? {
                return Err(missing.clone().into());
            }
            policies.push(Policy::parse(read_source(path)?)?);
        }
        Ok(policies)
    }

    /// Returns the paths of the requirements files that apply, and of the policies that they name.
    pub(super) fn named_files(&self) -> impl Iterator<Item = PathBuf> {
        let policy = |requirement: &Arc<Requirement>| Some(requirement.policy.as_ref()?.path.clone());
        let paths = self.0.iter().map(|requirement| PathBuf::from(&requirement.path));
        paths.chain(self.0.iter().filter_map(policy))
    }

    /// Returns the SHA-256 of each requirements file.
    pub(super) fn digests(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|requirement| &requirement.digest)
    }

    /// Returns the SHA-256 of all requirements files together. `None` if there are none.
    pub(super) fn digest(&self) -> Option<String> {
        digest::combined_sha256(&self.digests().cloned().collect::<Vec<_>>())
    }

    /// Returns why nothing may run. `None` if code may run.
    pub(super) fn stop(&self) -> Option<&str> {
        self.0.iter().find_map(|requirement| requirement.stop.as_deref())
    }

    /// Returns the table of the built-in server `files`, if the requirements have one.
    pub(super) fn files(&self) -> Option<&FilesTable> {
        self.0.iter().find_map(|requirement| requirement.files.as_ref())
    }

    /// Whether the requirements set a key of the configuration.
    pub(super) fn set_key(&self, table: &str, key: &str) -> bool {
        let sets = |requirement: &Arc<Requirement>| requirement.tables.get(table)?.get(key).map(drop);
        self.0.iter().any(|requirement| sets(requirement).is_some())
    }

    /// Whether these requirements and `other` set the same keys in these tables.
    pub(super) fn set_equally(&self, other: &Self, tables: &[&str]) -> bool {
        let set = |requirements: &Self| -> Vec<Vec<Option<toml::Value>>> {
            let of_file = |requirement: &Arc<Requirement>| {
                tables.iter().map(|table| requirement.tables.get(*table).cloned()).collect()
            };
            requirements.0.iter().map(of_file).collect()
        };
        set(self) == set(other)
    }

    /// Returns a configuration with the keys that the requirements set in place of the user's. They can raise what an approval
    /// must prove, and not lower it.
    ///
    /// # Errors
    /// [`ConfigError::Unusable`] for a value that does not fit the configuration.
    pub(super) fn lay_over(
        &self,
        document: &ConfigToml,
        environment: &Environment,
    ) -> Result<ConfigToml, ConfigError> {
        let mut document = document.clone();
        for requirement in self.0.iter().rev().filter(|requirement| !requirement.tables.is_empty()) {
            let presence = document.approvals.presence;
            let merged = document.with_keys(&requirement.tables);
            document = merged.map_err(|error| ConfigError::Unusable {
                path: PathBuf::from(&requirement.path),
                reason: error.to_string(),
            })?;
            document.approvals.presence = document.approvals.presence.max(presence);
            document.expand_home(environment);
        }
        if let Some(files) = self.files() {
            document.files = files.clone();
        }
        Ok(document)
    }

    /// Splits the configured servers, and those of the first requirements file that fixes the servers, into the servers
    /// that all requirements files permit and the refused ones. `limits` are the default limits of servers.
    pub(super) fn apply(
        &self,
        configured: BTreeMap<ServerName, ServerDefinition>,
        limits: ServerLimits,
        environment: &Environment,
    ) -> (BTreeMap<ServerName, ServerDefinition>, Vec<ForbiddenServer>) {
        let resolve = |requirement| ResolvedRequirement::new(requirement, limits, environment);
        let resolved: Vec<_> = self.0.iter().map(|requirement| resolve(requirement)).collect();
        let fixed = resolved.iter().find_map(|requirement| requirement.fixed.as_ref());
        let listed = fixed.into_iter().flatten().map(|(name, definition)| (name.clone(), definition.clone()));
        let listed = listed.map(|(name, definition)| (name, definition, true));
        let configured = configured.into_iter().map(|(name, definition)| (name, definition, false));
        let (mut refusals, mut admitted) = (Vec::new(), BTreeMap::new());
        for (name, definition, is_fixed) in configured.chain(listed) {
            match self.check(&resolved, &name, &definition) {
                Ok(admission) => {
                    let mut definition = admission.apply_to(definition);
                    self.determine(&mut definition, is_fixed);
                    admitted.insert(name, definition);
                }
                Err(reason) => {
                    refusals.push(ForbiddenServer { server: name, origin: definition.origin, reason });
                }
            }
        }
        (admitted, refusals)
    }

    fn check(
        &self,
        resolved: &[ResolvedRequirement<'_>],
        name: &ServerName,
        definition: &ServerDefinition,
    ) -> Result<Admission, RefusalReason> {
        let is_fixed = resolved.iter().any(|requirement| requirement.fixed.is_some());
        let identity = Identity::from_endpoint(&definition.endpoint, is_fixed);
        let mut admission = Admission::default();
        for ResolvedRequirement { requirement, fixed } in resolved {
            let approved = requirement.check(fixed.as_ref(), name, definition, &identity)?;
            admission.is_required |= fixed.is_some() || approved.is_some();
            admission.is_judged_by_url |= requirement.judges_urls();
            if let Some(entry) = approved {
                admission.sha256 = admission.sha256.or(entry.matcher.sha256().map(str::to_owned));
                admission.proxy = admission.proxy.or(entry.matcher.proxy().cloned());
            }
        }
        // Without requirements, the program is looked up when it starts.
        if let Identity::Program(path) = identity
            && !self.0.is_empty()
        {
            admission.program = Some(path);
        }
        Ok(admission)
    }

    /// Lays over a server what the requirements determine about every server. The file in `/etc` is applied last, so that it
    /// decides.
    fn determine(&self, definition: &mut ServerDefinition, is_fixed: bool) {
        for requirement in self.0.iter().rev() {
            if let Some(expose) = requirement.expose.filter(|_| !is_fixed) {
                let mut exposure = expose.exposure();
                // The names of direct tools stay.
                if exposure.direct.is_some() && definition.exposure.direct.is_some() {
                    exposure.direct.clone_from(&definition.exposure.direct);
                }
                definition.exposure = exposure;
            }
            if let Some(every) = &requirement.every {
                every.apply_to(definition);
            }
        }
        if self.0.iter().any(|requirement| requirement.requires_sandbox)
            && let Endpoint::Stdio(command) = &mut definition.endpoint
        {
            command.confinement.iter_mut().for_each(|confinement| confinement.requires_full = true);
        }
    }
}

impl<'r> ResolvedRequirement<'r> {
    fn new(requirement: &'r Requirement, limits: ServerLimits, environment: &Environment) -> Self {
        let home = account_home(geteuid()).or_else(|| environment.home.clone());
        let environment = &Environment { home, ..environment.clone() };
        let path = requirement.path.as_str();
        let resolve = |listed| requirements_toml::resolve(listed, path, limits, environment);
        let fixed = requirement.fixed.as_ref().map(|fixed| fixed.iter().filter_map(resolve).collect());
        Self { requirement, fixed }
    }
}

/// A requirements file that may apply.
struct PossibleFile {
    path: PathBuf,
    /// The Unix users who may own this file and the files that it names.
    owners: TrustedOwners,
    /// Whether the file may be missing.
    is_optional: bool,
}

/// Returns the requirements files that may apply. The file in `/etc` may be missing; the file that the environment variable
/// [`FURTHER_FILE`] names must exist.
fn possible_files() -> Result<Vec<PossibleFile>, ConfigError> {
    let file = |path: PathBuf, is_optional| {
        let owners = owners_of(&path.display().to_string());
        PossibleFile { path, owners, is_optional }
    };
    let mut files = vec![file(PathBuf::from(FILE), true)];
    if let Some(further) = std::env::var_os(FURTHER_FILE) {
        let further = std::path::absolute(&further)
            .map_err(|source| ConfigError::Unreadable { path: further.into(), source })?;
        // The file in /etc keeps its own rules if the variable names it.
        if further != Path::new(FILE) {
            files.push(file(further, false));
        }
    }
    Ok(files)
}

/// Returns the paths that requirements files have, whether they exist or not.
pub(super) fn paths() -> Vec<PathBuf> {
    possible_files().unwrap_or_default().into_iter().map(|file| file.path).collect()
}

/// Returns the Unix users who may own a requirements file and the files that it names.
fn owners_of(path: &str) -> TrustedOwners {
    // Whoever made a user namespace has chosen its /etc, too.
    match path == FILE && !is_in_user_namespace() {
        true => TrustedOwners::root(),
        false => TrustedOwners::root_and_own(),
    }
}

impl Requirement {
    /// Whether the admission of a server depends on its URL.
    fn judges_urls(&self) -> bool {
        self.fixed.is_some() || self.approved.is_some() || self.denied.iter().any(DeniedServer::has_url)
    }

    /// Checks a server, and returns the entry of `[[approved]]` that it matches, if the file has any.
    fn check(
        &self,
        fixed: Option<&BTreeMap<ServerName, ServerDefinition>>,
        name: &ServerName,
        definition: &ServerDefinition,
        identity: &Identity,
    ) -> Result<Option<&ApprovedServer>, RefusalReason> {
        let mut denied = self.denied.iter();
        if let Some(denied) = denied.find(|denied| denied.matches(name, definition, identity)) {
            return Err(RefusalReason::Denied(denied.place.clone()));
        }
        if self.stop.is_some() {
            return Err(RefusalReason::Stopped(self.path.clone()));
        }
        let variable = self.every.as_ref().and_then(|every| every.forbidden_variable(definition));
        if let Some(variable) = variable {
            let (path, variable) = (self.path.clone(), variable.to_owned());
            return Err(RefusalReason::Variable { path, variable });
        }
        if let Some(fixed) = fixed {
            match fixed.get(name) {
                None => return Err(RefusalReason::NotListed(self.path.clone())),
                Some(listed) if listed.endpoint != definition.endpoint => {
                    return Err(RefusalReason::ListedOtherwise { place: listed.origin.clone() });
                }
                Some(_) => {}
            }
        } else if definition.endpoint.uses_sse() && self.judges_urls() {
            return Err(RefusalReason::NamesUrl(self.path.clone()));
        }
        let Some(approved) = &self.approved else { return Ok(None) };
        let mut reason = RefusalReason::NameNotApproved(self.path.clone());
        for entry in approved.iter().filter(|entry| entry.name == *name) {
            match entry.matcher.matches(definition, identity) {
                Ok(()) => return Ok(Some(entry)),
                Err(mismatch) => reason = RefusalReason::NotApproved { place: entry.place.clone(), mismatch },
            }
        }
        Err(reason)
    }
}

#[cfg(test)]
mod tests {
    use lockhouse_approvals::Presence;
    use lockhouse_policies::Source;

    use super::*;

    #[test]
    fn requirements_raise_what_an_approval_must_prove_and_never_lower_it() {
        let table = |presence: &str| match presence {
            "" => String::new(),
            presence => format!("[approvals]\npresence = \"{presence}\"\n"),
        };
        let source = |presence: &str| Source { path: "a.toml".into(), text: table(presence) };
        for (own, required, expected) in [
            ("", vec![], Presence::None),
            ("", vec![""], Presence::None),
            ("", vec!["password"], Presence::Password),
            ("none", vec!["key"], Presence::Key),
            ("password", vec!["key"], Presence::Key),
            ("key", vec!["password"], Presence::Key),
            ("key", vec!["none"], Presence::Key),
            ("password", vec!["none", "none"], Presence::Password),
            ("none", vec!["password", "key"], Presence::Key),
            ("none", vec!["key", "password"], Presence::Key),
        ] {
            let environment = Environment::default();
            let document = ConfigToml::parse(&source(own), &environment).expect("a configuration");
            let parse = |presence: &&str| {
                Arc::new(requirements_toml::parse(&source(presence), &environment).expect("requirements"))
            };
            let requirements = Requirements(required.iter().map(parse).collect());
            let document = requirements.lay_over(&document, &environment).expect("they fit");
            assert_eq!(document.approvals.presence, expected, "{own} {required:?}");
        }
    }
}
