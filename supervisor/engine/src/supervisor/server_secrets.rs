//! Secrets of servers that root gives to the engine of the system. The engine writes them to files of its own account, and no
//! request reads them back.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use lockhouse_audit::{AuditError, Change, ChangeTarget, Channel, LocalUser};
use lockhouse_base::files;
use lockhouse_messages::{ReloadReport, SecretName, SecretValue};

use super::{ReloadUnavailable, Supervisor};

/// Maximum number of secrets of an engine.
/// Bound: upstream servers.
const SECRETS_MAX: usize = 1_000;

/// Why a secret is not set.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "only the engine of the system takes secrets: those of another one are files in its folder `secrets`"
    )]
    NotOfSystem,
    #[error("only root sets secrets of the engine of the system: sudo lockhouse server secret")]
    NotRoot,
    #[error("this engine has {SECRETS_MAX} secrets: remove one first")]
    TooMany,
    #[error("the secret was not set, because the audit log cannot record it: {0}")]
    Unrecorded(#[from] AuditError),
    #[error("the secret cannot be written: {0}")]
    Unwritable(#[from] io::Error),
    #[error(transparent)]
    NotReloaded(#[from] ReloadUnavailable),
}

impl Supervisor {
    /// Sets a secret, or replaces it, and reloads the configuration: servers whose secret has changed start again.
    ///
    /// # Errors
    /// The caller is not root, or the secret cannot be recorded or written.
    pub async fn set_secret(
        &self,
        name: &SecretName,
        value: &SecretValue,
        by: Option<LocalUser>,
    ) -> Result<ReloadReport, SecretError> {
        let by = by.filter(|by| by.uid == 0).ok_or(SecretError::NotRoot)?;
        let approved = self.settings.proposal.as_ref().and_then(|files| files.approved.first());
        let folder = approved.and_then(|policy| policy.parent()).ok_or(SecretError::NotOfSystem)?;
        let folder = folder.join("secrets");
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let file = folder.join(name.as_str());
        if !file.exists() && std::fs::read_dir(&folder)?.count() >= SECRETS_MAX {
            return Err(SecretError::TooMany);
        }
        self.record_secret(&file, by)?;
        files::replace_durably(&file, value.expose().as_bytes())?;
        Ok(self.request_reload(Some(by)).await?)
    }

    /// The record has no digest: one of a short secret would give it away.
    fn record_secret(&self, file: &Path, by: LocalUser) -> Result<(), AuditError> {
        let (target, through) = (ChangeTarget::Secret, Channel::of_operator(by));
        let action = "set a secret";
        let change =
            Change { target, file, action, through, before: None, after: None, presence: None, failed: None };
        self.gate().audit().change(change, by)
    }
}
