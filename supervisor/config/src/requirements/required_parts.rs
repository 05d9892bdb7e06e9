//! Which parts of a managed host the administrator requires, for `lockhouse doctor`.

use lockhouse_approvals::Presence;
use nix::unistd::geteuid;

use super::system_engine::is_person;
use super::{FILE, Requirements};

/// What the requirements in `/etc` ask for. A further file that a user names does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequiredParts {
    /// Whether there is a file, which only root can have written.
    pub has_file: bool,
    /// Whether only the system's engines run code for people.
    pub has_system_engine: bool,
    /// Whether a policy restricts that of every user.
    pub has_policy: bool,
    /// Whether a host without a protection runs nothing.
    pub requires_sandbox: bool,
    /// Whether an audit sink writes every log.
    pub has_sink: bool,
    /// What approvals must prove at least.
    pub presence: Presence,
    /// Whether this process has the account of a service, and not that of a person or root.
    pub is_service: bool,
}

impl RequiredParts {
    /// The path of the requirements that count.
    pub const FILE: &'static str = FILE;
}

impl Requirements {
    pub(crate) fn required_parts(&self) -> RequiredParts {
        let account = geteuid();
        let is_service = !account.is_root() && !is_person(account);
        let Some(file) = self.0.iter().find(|requirement| requirement.path == FILE) else {
            return RequiredParts { is_service, ..RequiredParts::default() };
        };
        RequiredParts {
            has_file: true,
            has_system_engine: file.has_system_engine,
            has_policy: file.policy.is_some(),
            requires_sandbox: file.requires_sandbox,
            presence: presence(&file.tables),
            has_sink: file.tables.get("audit").is_some_and(|audit| audit.get("sink").is_some()),
            is_service,
        }
    }
}

/// Returns what approvals must prove. A value that is none is an error of the configuration, which it has been checked for.
fn presence(tables: &toml::Table) -> Presence {
    let value = tables.get("approvals").and_then(|approvals| approvals.get("presence")).cloned();
    value.and_then(|value| value.try_into().ok()).unwrap_or_default()
}
