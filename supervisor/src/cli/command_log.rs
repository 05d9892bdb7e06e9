//! The audit log of one command: what a person does with it to tokens, logins and definitions. It is a chain of its own.

use std::sync::Arc;

use lockhouse_audit::{Audit, AuditError, LoginStep, Person, TokenChange};
use lockhouse_protocol::ServerName;

use crate::config::{self, Files};

/// Open until it is dropped. No file is begun before there is a record.
pub(super) struct CommandLog(Arc<Audit>);

impl CommandLog {
    /// The log of the configuration.
    ///
    /// # Errors
    /// Why nothing can be recorded.
    pub(super) fn open(files: &Files) -> Result<Self, String> {
        let settings = config::load_audit_settings(files).map_err(|error| error.to_string())?;
        Audit::open(settings).map(Self).map_err(in_words)
    }

    /// # Errors
    /// Why it is not recorded; the same of the others.
    pub(super) fn token(&self, name: &str, change: TokenChange<'_>) -> Result<(), String> {
        self.0.token(name, change, Person::of_this_process()).map_err(in_words)
    }

    pub(super) fn login(&self, server: &ServerName, step: LoginStep) -> Result<(), String> {
        self.0.login(server, step, Person::of_this_process()).map_err(in_words)
    }

    /// `digest` is the SHA-256 of what a person was shown.
    pub(super) fn definitions_accepted(
        &self,
        server: &ServerName,
        tools: &[String],
        digest: &str,
    ) -> Result<(), String> {
        self.0.definitions_accepted(server, tools, digest, Person::of_this_process()).map_err(in_words)
    }

    /// Something was done that counts without a record: says what is missing.
    pub(super) fn warn(recorded: Result<(), String>) {
        if let Err(reason) = recorded {
            eprintln!("lockhouse: WARNING: that is done, and not in the audit log: {reason}");
        }
    }
}

impl Drop for CommandLog {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn in_words(error: AuditError) -> String {
    error.to_string()
}
