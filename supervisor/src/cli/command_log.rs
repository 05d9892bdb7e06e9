//! The audit log of one command: what a person does with it to tokens, logins and definitions. It is a chain of its own.

use std::sync::Arc;

use lockhouse_audit::{Audit, AuditError, LoginStep, Person, TokenChange};
use lockhouse_protocol::ServerName;

use crate::config::{self, ConfigError, Files};

/// Why something is not in the audit log.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRecorded {
    /// The configuration does not say where the log is.
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Audit(#[from] AuditError),
}

/// Open until it is dropped. No file is begun before there is a record.
pub(super) struct CommandLog(Arc<Audit>);

impl CommandLog {
    /// The log of the configuration.
    ///
    /// # Errors
    /// [`NotRecorded`]: nothing can be recorded.
    pub(super) fn open(files: &Files) -> Result<Self, NotRecorded> {
        Ok(Self(Audit::open(config::load_audit_settings(files)?)?))
    }

    /// # Errors
    /// [`NotRecorded`]; the same of the others.
    pub(super) fn token(&self, name: &str, change: TokenChange<'_>) -> Result<(), NotRecorded> {
        Ok(self.0.token(name, change, Person::of_this_process())?)
    }

    pub(super) fn login(&self, server: &ServerName, step: LoginStep) -> Result<(), NotRecorded> {
        Ok(self.0.login(server, step, Person::of_this_process())?)
    }

    /// `digest` is the SHA-256 of what a person was shown.
    pub(super) fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
    ) -> Result<(), NotRecorded> {
        Ok(self.0.definitions_accepted(server, tools, digest, Person::of_this_process())?)
    }

    /// Something was done that counts without a record: says what is missing.
    pub(super) fn warn(recorded: Result<(), NotRecorded>) {
        if let Err(error) = recorded {
            eprintln!("lockhouse: WARNING: that is done, and not in the audit log: {error}");
        }
    }
}

impl Drop for CommandLog {
    fn drop(&mut self) {
        self.0.close();
    }
}
