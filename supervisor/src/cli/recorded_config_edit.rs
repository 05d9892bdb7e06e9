//! Saves edits of the configuration file, each after its record in the audit log.

use lockhouse_audit::{ChangeTarget, Channel};
use lockhouse_config::{ConfigEdit, ConfigError, Files, recorded_config_path};

use super::command_audit_log::{ChangeError, FileChange};

/// Checks an edit, records it, and replaces the configuration file. `action` says what is changed. An edit that
/// `only_restricts` is made even if it cannot be recorded.
///
/// # Errors
/// The edit is not valid, or cannot be recorded or written.
pub(super) fn save(
    edit: ConfigEdit,
    files: &Files,
    action: &str,
    only_restricts: bool,
) -> Result<(), ConfigError> {
    let (path, text) = (edit.path().to_owned(), edit.text());
    let prepared = edit.prepare(files)?;
    let change = FileChange {
        target: ChangeTarget::Configuration,
        path: recorded_config_path(files),
        action,
        through: Channel::Command,
        text: Some(&text),
        only_restricts,
    };
    change.make(files, || prepared.commit()).map_err(|error| match error {
        ChangeError::Failed(error) => error,
        ChangeError::Unrecorded(error) => ConfigError::Unrecorded { path, reason: error.to_string() },
    })
}
