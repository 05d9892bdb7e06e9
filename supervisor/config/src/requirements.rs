//! Enforces the administrator's requirements, `/etc/lockhouse/requirements.toml`, on every configuration of this
//! machine.
//!
//! Requirements only restrict and never grant: a server is used only if every requirements file permits it. Servers are
//! identified by name *and* by program or address, so that no server can impersonate another.

mod address;
mod admission;
mod denial;
mod file_trust;
mod identity;
mod requirements_toml;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockhouse_base::path_trust::{TrustedOwners, is_in_user_namespace};
use lockhouse_base::text_files::read_source;
use lockhouse_policies::{Policy, Source, SourceLocation};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};

use super::error::ConfigError;
use super::placeholders::Environment;
use admission::Admission;
use identity::{Identity, Mismatch};
use requirements_toml::{ApprovedServer, DeniedServer};

const FILE: &str = "/etc/lockhouse/requirements.toml";
/// The environment variable with the path of a further requirements file. That file applies in addition to the one in
/// `/etc`, so setting the variable can only restrict.
const FURTHER_FILE: &str = "LOCKHOUSE_REQUIREMENTS";

/// The requirements files that apply to this process.
#[derive(Debug, Default)]
pub(super) struct Requirements(Vec<Requirement>);

/// The requirements in one requirements file of the administrator.
#[derive(Debug)]
struct Requirement {
    path: String,
    /// The only servers that may be used, with their definitions. `None` if the file does not fix the servers.
    fixed: Option<BTreeMap<ServerName, ServerDefinition>>,
    /// The approved servers: only servers that match an entry may be used. `None` if the file does not require approved
    /// servers.
    approved: Option<Vec<ApprovedServer>>,
    denied: Vec<DeniedServer>,
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
    /// [`ConfigError`] if a file is untrusted, unreadable or invalid. Lockhouse then uses no upstream server at all.
    pub(super) fn load(limits: ServerLimits, environment: &Environment) -> Result<Self, ConfigError> {
        let parse = |file: File| Ok(requirements_toml::parse(&file.source, limits, environment)?);
        Ok(Self(files()?.into_iter().map(parse).collect::<Result<_, ConfigError>>()?))
    }

    /// Splits the configured servers, and those of the first requirements file that fixes the servers, into the servers
    /// that all requirements files permit and the refused ones.
    pub(super) fn apply(
        &self,
        configured: BTreeMap<ServerName, ServerDefinition>,
    ) -> (BTreeMap<ServerName, ServerDefinition>, Vec<ForbiddenServer>) {
        let mut refusals = Vec::new();
        let mut admitted = BTreeMap::new();
        let fixed = self.0.iter().find_map(|requirement| requirement.fixed.as_ref());
        let listed = fixed.into_iter().flatten().map(|(name, definition)| (name.clone(), definition.clone()));
        for (name, definition) in configured.into_iter().chain(listed) {
            match self.check(&name, &definition) {
                Ok(admission) => drop(admitted.insert(name, admission.apply_to(definition))),
                Err(reason) => {
                    refusals.push(ForbiddenServer { server: name, origin: definition.origin, reason });
                }
            }
        }
        (admitted, refusals)
    }

    fn check(&self, name: &ServerName, definition: &ServerDefinition) -> Result<Admission, RefusalReason> {
        let is_fixed = self.0.iter().any(|requirement| requirement.fixed.is_some());
        let identity = Identity::from_endpoint(&definition.endpoint, is_fixed);
        let mut admission = Admission::default();
        for requirement in &self.0 {
            let approved = requirement.check(name, definition, &identity)?;
            admission.is_required |= requirement.fixed.is_some() || approved.is_some();
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
}

/// A requirements file, and the Unix users who may own this file and the files that it names.
struct File {
    source: Source,
    owners: TrustedOwners,
}

/// Finds the requirements files that apply. The file in `/etc` may be missing; the file that the environment variable
/// [`FURTHER_FILE`] names must exist.
fn files() -> Result<Vec<File>, ConfigError> {
    let mut files = Vec::new();
    // Whoever made a user namespace has chosen its /etc, too.
    let owners = match is_in_user_namespace() {
        true => TrustedOwners::root_and_own(),
        false => TrustedOwners::root(),
    };
    let system = Path::new(FILE);
    if file_trust::trusted_file_exists(system, &owners)? {
        files.push(File { source: read_source(system)?, owners });
    }
    if let Some(further) = std::env::var_os(FURTHER_FILE) {
        let further = std::path::absolute(&further)
            .map_err(|source| ConfigError::Unreadable { path: further.into(), source })?;
        let owners = TrustedOwners::root_and_own();
        file_trust::trusted_file_exists(&further, &owners)?;
        files.push(File { source: read_source(&further)?, owners });
    }
    Ok(files)
}

/// Returns the paths of the requirements files that apply, and of the policies that they name.
///
/// # Errors
/// [`ConfigError`] if a file is untrusted, unreadable or invalid.
pub(super) fn named_files() -> Result<Vec<PathBuf>, ConfigError> {
    let mut named = Vec::new();
    for File { source, .. } in files()? {
        named.extend(requirements_toml::required_policy_path(&source)?.map(toml::Spanned::into_inner));
        named.push(source.path.into());
    }
    Ok(named)
}

/// Loads the policies that requirements files name. Each one is evaluated together with the user's policy, and can only
/// restrict it.
///
/// # Errors
/// [`ConfigError`] if a policy is missing, untrusted or invalid. Lockhouse then permits no calls at all.
pub(super) fn policies() -> Result<Vec<Policy>, ConfigError> {
    let mut policies = Vec::new();
    for File { source, owners } in files()? {
        let Some(path) = requirements_toml::required_policy_path(&source)? else { continue };
        if !file_trust::trusted_file_exists(path.get_ref(), &owners)? {
            return Err(
                requirements_toml::fault_in(&source, Some(path.span()), "there is no such file").into()
            );
        }
        policies.push(Policy::parse(read_source(path.get_ref())?)?);
    }
    Ok(policies)
}

impl Requirement {
    /// Whether the admission of a server depends on its URL.
    fn judges_urls(&self) -> bool {
        self.fixed.is_some() || self.approved.is_some() || self.denied.iter().any(DeniedServer::has_url)
    }

    /// Checks a server, and returns the entry of `[[approved]]` that it matches, if the file has any.
    fn check(
        &self,
        name: &ServerName,
        definition: &ServerDefinition,
        identity: &Identity,
    ) -> Result<Option<&ApprovedServer>, RefusalReason> {
        let mut denied = self.denied.iter();
        if let Some(denied) = denied.find(|denied| denied.matches(name, definition, identity)) {
            return Err(RefusalReason::Denied(denied.place.clone()));
        }
        if let Some(fixed) = &self.fixed {
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
