//! Records what a command changes (tokens, logins, accepted definitions) in the audit log, as a hash chain of its
//! own.

use std::sync::Arc;

use lockhouse_audit::{Audit, AuditError, LocalUser, LoginStep, TokenChange};
use lockhouse_protocol::ServerName;

use crate::config::{self, ConfigError, Files};

/// Why an action could not be recorded.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// The configuration, which names the log's directory, cannot be loaded.
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// The audit log of one command. A file is created with the first record, and closed on drop.
pub(super) struct CommandAuditLog(Arc<Audit>);

impl CommandAuditLog {
    /// Opens the configured audit log.
    ///
    /// # Errors
    /// [`RecordError`] if the configuration or the log cannot be used.
    pub(super) fn open(files: &Files) -> Result<Self, RecordError> {
        Ok(Self(Audit::open(config::load_audit_settings(files)?)?))
    }

    /// # Errors
    /// [`RecordError`] if the record cannot be written.
    pub(super) fn token(&self, name: &str, change: TokenChange<'_>) -> Result<(), RecordError> {
        Ok(self.0.token(name, change, LocalUser::current())?)
    }

    pub(super) fn login(&self, server: &ServerName, step: LoginStep) -> Result<(), RecordError> {
        Ok(self.0.login(server, step, LocalUser::current())?)
    }

    /// Records that the user accepted the definitions of `tools`. `digest` is the SHA-256 of the definitions that
    /// were shown.
    pub(super) fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
    ) -> Result<(), RecordError> {
        Ok(self.0.definitions_accepted(server, tools, digest, LocalUser::current())?)
    }

    /// Warns if an action that has taken effect could not be recorded.
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
