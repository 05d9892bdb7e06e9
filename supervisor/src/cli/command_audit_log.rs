//! Writes the changes that a command makes (tokens, logins, accepted tool definitions, files) to the audit log, as a
//! separate hash chain.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use lockhouse_audit::{
    Audit, AuditError, Change, ChangeTarget, Channel, Edit, Ended, LocalUser, LoginStep, PendingChange,
    TokenChange,
};
use lockhouse_config::{self as config, ConfigError, Files};
use lockhouse_protocol::ServerName;

/// Why an action of a command could not be recorded in the audit log.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// The configuration, which names the directory of the audit log, cannot be loaded.
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// Why a recorded change of a file was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError<E> {
    /// Nothing changes without a record.
    #[error("nothing was changed, because the audit log cannot record it: {0}")]
    Unrecorded(RecordError),
    #[error("{0}")]
    Failed(E),
}

/// A change of a file that a command makes.
pub(super) struct FileChange<'a> {
    pub(super) target: ChangeTarget,
    pub(super) path: PathBuf,
    /// What is changed, such as `allow tickets.create`.
    pub(super) action: &'a str,
    pub(super) through: Channel,
    /// The text of the file after the change, if it is known.
    pub(super) text: Option<&'a str>,
    /// Whether the change only takes permissions away. It is then made even if it cannot be recorded.
    pub(super) only_restricts: bool,
}

impl FileChange<'_> {
    /// Records the change, and makes it with `make`.
    ///
    /// # Errors
    /// The change cannot be recorded, or `make` fails.
    pub(super) fn make<T, E: Display>(
        self,
        files: &Files,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, ChangeError<E>> {
        let only_restricts = self.only_restricts;
        let log = CommandAuditLog::open_for_edit(files);
        let begun = log.and_then(|log| Ok((log.begin(self)?, log)));
        match begun {
            Ok((pending, _log)) => pending.finish(make()).map_err(ChangeError::Failed),
            Err(error) if only_restricts => {
                let made = make().map_err(ChangeError::Failed)?;
                CommandAuditLog::warn(Err(error));
                Ok(made)
            }
            Err(error) => Err(ChangeError::Unrecorded(error)),
        }
    }
}

/// The audit records of one command, as a segment (file) of the audit log. The segment is created with the first
/// record, and closed on drop.
pub(super) struct CommandAuditLog(Arc<Audit>);

impl CommandAuditLog {
    /// Opens the configured audit log.
    ///
    /// # Errors
    /// [`RecordError`] if the configuration or the audit log cannot be used.
    pub(super) fn open(files: &Files) -> Result<Self, RecordError> {
        Ok(Self(Audit::open(config::load_audit_settings(files)?)?))
    }

    /// Opens the configured audit log for a command that may create the configuration.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn open_for_edit(files: &Files) -> Result<Self, RecordError> {
        Ok(Self(Audit::open(config::load_audit_settings_for_edit(files)?)?))
    }

    /// Returns the log for other crates that make recorded changes.
    pub(super) fn audit(&self) -> &Arc<Audit> {
        &self.0
    }

    fn begin(&self, change: FileChange<'_>) -> Result<PendingChange, RecordError> {
        let FileChange { target, path, action, through, text, .. } = change;
        let edit = Edit { target, path: &path, action, through, text, presence: None };
        Ok(self.0.begin_change(edit, LocalUser::current())?)
    }

    /// Records a change of something else than a configuration file: before it is made, or that it failed.
    ///
    /// # Errors
    /// [`RecordError`] if the record cannot be written.
    pub(super) fn change(&self, change: Change<'_>) -> Result<(), RecordError> {
        Ok(self.0.change(change, LocalUser::current())?)
    }

    /// Records a change of an AI client's token, such as its creation.
    ///
    /// # Errors
    /// [`RecordError`] if the record cannot be written.
    pub(super) fn token(&self, name: &str, change: TokenChange<'_>) -> Result<(), RecordError> {
        Ok(self.0.token(name, change, LocalUser::current())?)
    }

    pub(super) fn login(&self, server: &ServerName, step: LoginStep) -> Result<(), RecordError> {
        Ok(self.0.login(server, step, None, LocalUser::current())?)
    }

    /// Records that the user accepted the current definitions of an upstream server's `tools`. `digest` is the SHA-256
    /// of the definitions that the user was shown.
    pub(super) fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
    ) -> Result<(), RecordError> {
        Ok(self.0.definitions_accepted(server, tools, digest, None, LocalUser::current())?)
    }

    /// Records that root stops the processes of all accounts.
    pub(super) fn stop_all(&self, reason: Option<&str>) -> Result<(), RecordError> {
        Ok(self.0.termination(Ended::AllProcesses, reason, LocalUser::current())?)
    }

    /// Erases names of clients, if records have ids in their place. Returns whether they have.
    ///
    /// # Errors
    /// [`RecordError`] if the names may still be there.
    pub(super) fn erase_names(&self, names: &[String]) -> Result<bool, RecordError> {
        Ok(self.0.erase_names(names)?)
    }

    /// Prints a warning if an action of a command has taken effect, but could not be recorded in the audit log.
    pub(super) fn warn(recorded: Result<(), RecordError>) {
        if let Err(error) = recorded {
            eprintln!("lockhouse: WARNING: done, but not recorded in the audit log: {error}");
        }
    }
}

impl Drop for CommandAuditLog {
    fn drop(&mut self) {
        self.0.close();
    }
}
