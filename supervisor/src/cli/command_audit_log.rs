//! Writes the changes that a command makes (tokens, logins, accepted tool definitions) to the audit log, as a separate
//! hash chain.

use std::sync::Arc;

use lockhouse_audit::{Audit, AuditError, LocalUser, LoginStep, TokenChange};
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

    /// Records a change of an AI client's token, such as its creation.
    ///
    /// # Errors
    /// [`RecordError`] if the record cannot be written.
    pub(super) fn token(&self, name: &str, change: TokenChange<'_>) -> Result<(), RecordError> {
        Ok(self.0.token(name, change, LocalUser::current())?)
    }

    pub(super) fn login(&self, server: &ServerName, step: LoginStep) -> Result<(), RecordError> {
        Ok(self.0.login(server, step, LocalUser::current())?)
    }

    /// Records that the user accepted the current definitions of an upstream server's `tools`. `digest` is the SHA-256
    /// of the definitions that the user was shown.
    pub(super) fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
    ) -> Result<(), RecordError> {
        Ok(self.0.definitions_accepted(server, tools, digest, LocalUser::current())?)
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
