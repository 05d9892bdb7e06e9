//! What an administrator requires of every configuration on this machine: `/etc/lockhouse/requirements.toml`.
//!
//! It takes away and never gives: whatever the user configures, and wherever, a server is used only if each requirement
//! admits it. Servers are known by their name *and* by what they are, so that none can take the place of another.

mod document;
mod identity;
mod trust;

use std::collections::BTreeMap;
use std::path::Path;

use lockhouse_base::text_files::read_source;
use lockhouse_policies::{Place, Policy, Source};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};
use nix::unistd::{Uid, geteuid};

use super::error::ConfigError;
use super::references::Surroundings;
use document::{Approved, Denied};
use identity::{Identity, Mismatch};

const FILE: &str = "/etc/lockhouse/requirements.toml";
/// Names one more file. It is held to besides the one above, so setting this can only take away.
const FURTHER_FILE: &str = "LOCKHOUSE_REQUIREMENTS";

/// Every file of requirements that there is.
#[derive(Debug, Default)]
pub(super) struct Requirements(Vec<Requirement>);

/// One file.
#[derive(Debug)]
struct Requirement {
    path: String,
    /// These servers and no others.
    fixed: Option<BTreeMap<ServerName, ServerDefinition>>,
    /// What is not listed is not used.
    approved: Option<Vec<Approved>>,
    denied: Vec<Denied>,
}

/// A server that was configured and is not used.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    server: ServerName,
    origin: String,
    reason: Reason,
}

impl Refusal {
    /// The server, where it comes from, and why it is not used.
    pub(super) fn parts(&self) -> (String, String, String) {
        (self.server.to_string(), self.origin.clone(), self.reason.to_string())
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "server {} of {} is left out: {}", self.server, self.origin, self.reason)
    }
}

/// Why a requirement does not admit a server.
#[derive(Clone, Debug, thiserror::Error)]
enum Reason {
    #[error("{0} lists the servers that are used, and it is none of them")]
    NotListed(String),
    #[error("{place} lists this server, and reaches it in another way")]
    ListedOtherwise { place: String },
    #[error("not approved by {0}: no [[approved]] has its name")]
    NameNotApproved(String),
    #[error("not approved by {place}: {mismatch}")]
    NotApproved { place: Place, mismatch: Mismatch },
    #[error("denied by {0}")]
    Denied(Place),
}

impl Requirements {
    /// Reads them. A file that others than an administrator could have written is no requirement and no permission either.
    ///
    /// # Errors
    /// [`ConfigError`], when there is a file that cannot be trusted, read or understood: nothing is used then.
    pub(super) fn load(limits: ServerLimits, surroundings: &Surroundings) -> Result<Self, ConfigError> {
        let parse = |file: File| Ok(document::parse(&file.source, limits, surroundings)?);
        Ok(Self(files()?.into_iter().map(parse).collect::<Result<_, ConfigError>>()?))
    }

    /// The servers that every requirement admits, and what became of the others.
    pub(super) fn apply(
        &self,
        configured: BTreeMap<ServerName, ServerDefinition>,
    ) -> (BTreeMap<ServerName, ServerDefinition>, Vec<Refusal>) {
        let mut refusals = Vec::new();
        let mut admitted = BTreeMap::new();
        let fixed = self.0.iter().find_map(|requirement| requirement.fixed.as_ref());
        let listed = fixed.into_iter().flatten().map(|(name, definition)| (name.clone(), definition.clone()));
        for (name, definition) in configured.into_iter().chain(listed) {
            match self.admit(&name, &definition) {
                Ok(identity) => drop(admitted.insert(name, identity.pinned(definition))),
                Err(reason) => {
                    refusals.push(Refusal { server: name, origin: definition.origin, reason });
                }
            }
        }
        (admitted, refusals)
    }

    fn admit(&self, name: &ServerName, definition: &ServerDefinition) -> Result<Identity, Reason> {
        let identity = Identity::of(&definition.reach);
        self.0.iter().try_for_each(|requirement| requirement.admit(name, definition, &identity))?;
        Ok(if self.0.is_empty() { Identity::Unknown } else { identity })
    }
}

/// One file of requirements, and who may have written what it names.
struct File {
    source: Source,
    owners: Vec<Uid>,
}

/// Those that there are. One that was named must be there.
fn files() -> Result<Vec<File>, ConfigError> {
    let mut files = Vec::new();
    let root = Uid::from_raw(0);
    let system = Path::new(FILE);
    if trust::is_there(system, &[root])? {
        files.push(File { source: read_source(system)?, owners: vec![root] });
    }
    if let Some(further) = std::env::var_os(FURTHER_FILE) {
        let further = std::path::absolute(&further)
            .map_err(|source| ConfigError::Unreadable { path: further.into(), source })?;
        let owners = vec![root, geteuid()];
        trust::is_there(&further, &owners)?;
        files.push(File { source: read_source(&further)?, owners });
    }
    Ok(files)
}

/// The policies that requirements name. Each is above the user's own: it can only take away.
///
/// # Errors
/// [`ConfigError`], when one is not there, cannot be trusted or has a fault: nothing is decided then.
pub(super) fn policies() -> Result<Vec<Policy>, ConfigError> {
    let mut policies = Vec::new();
    for File { source, owners } in files()? {
        let Some(path) = document::policy_above(&source)? else { continue };
        if !trust::is_there(path.get_ref(), &owners)? {
            return Err(document::fault_in(&source, Some(path.span()), "there is no such file").into());
        }
        policies.push(Policy::parse(read_source(path.get_ref())?)?);
    }
    Ok(policies)
}

impl Requirement {
    fn admit(
        &self,
        name: &ServerName,
        definition: &ServerDefinition,
        identity: &Identity,
    ) -> Result<(), Reason> {
        let mut denied = self.denied.iter();
        if let Some(denied) = denied.find(|denied| denied.means(name, definition, identity)) {
            return Err(Reason::Denied(denied.place.clone()));
        }
        if let Some(fixed) = &self.fixed {
            match fixed.get(name) {
                None => return Err(Reason::NotListed(self.path.clone())),
                Some(listed) if listed.reach != definition.reach => {
                    return Err(Reason::ListedOtherwise { place: listed.origin.clone() });
                }
                Some(_) => {}
            }
        }
        let Some(approved) = &self.approved else { return Ok(()) };
        let mut reason = Reason::NameNotApproved(self.path.clone());
        for entry in approved.iter().filter(|entry| entry.name == *name) {
            match entry.wanted.fits(definition, identity) {
                Ok(()) => return Ok(()),
                Err(mismatch) => reason = Reason::NotApproved { place: entry.place.clone(), mismatch },
            }
        }
        Err(reason)
    }
}
