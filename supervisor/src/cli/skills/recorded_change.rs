//! Changes skills, each after its record in the audit log.

use std::process::ExitCode;

use lockhouse_audit::{Change, ChangeTarget, Channel};
use lockhouse_config::Files;
use lockhouse_stores::skills::{Name, Skill, Skills, StoreError};

use crate::cli::UNAVAILABLE;
use crate::cli::command_audit_log::{ChangeError, CommandAuditLog};
use crate::cli::print_error;

/// A change of a skill in the store of an AI client.
pub(super) struct SkillChange<'a> {
    pub(super) skills: &'a Skills,
    pub(super) name: &'a Name,
    /// What is done: `approve` or `remove`.
    pub(super) action: &'a str,
    /// The skill after the change. `None` if it is removed, which is done even if it cannot be recorded.
    pub(super) after: Option<&'a Skill>,
}

impl SkillChange<'_> {
    /// Records the change, and makes it with `make`.
    ///
    /// # Errors
    /// The change cannot be recorded, or `make` fails. The reason was printed.
    pub(super) fn make<T>(
        self,
        files: &Files,
        make: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, ExitCode> {
        let folder = self.skills.own_folder(self.name).map_err(|error| print_error(&error, UNAVAILABLE))?;
        let before = self.skills.load(self.name).ok().map(|(skill, _)| skill.digest());
        let after = self.after.map(Skill::digest);
        let action = format!("{} {}", self.action, self.name);
        let change = Change {
            target: ChangeTarget::Skill,
            file: &folder,
            action: &action,
            through: Channel::Command,
            before: before.as_deref(),
            after: after.as_deref(),
            presence: None,
            failed: None,
        };
        let log = CommandAuditLog::open(files).and_then(|log| log.change(change).map(|()| log));
        let log = match log {
            Ok(log) => Some(log),
            Err(error) if self.after.is_some() => {
                return Err(print_error(&ChangeError::<StoreError>::Unrecorded(error), UNAVAILABLE));
            }
            Err(error) => {
                CommandAuditLog::warn(Err(error));
                None
            }
        };
        make().map_err(|error| {
            let failed = error.to_string();
            if let Some(log) = &log {
                CommandAuditLog::warn(log.change(Change { failed: Some(&failed), ..change }));
            }
            print_error(&error, UNAVAILABLE)
        })
    }
}
