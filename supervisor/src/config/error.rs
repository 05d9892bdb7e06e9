//! Why a configuration cannot be used.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lockhouse_base::text_files::ReadError;
use lockhouse_front::access::UsersError;
use lockhouse_policies::{Diagnostic, Diagnostics};

use super::oauth::OauthFault;

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Faults in a file, each with its place.
    #[error(transparent)]
    Faults(#[from] Diagnostics),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Unwritable { path: PathBuf, source: std::io::Error },
    /// A change that would leave a configuration that cannot be used.
    #[error("{path} stays as it was, since it would not be valid with the change:\n{reason}")]
    Refused { path: PathBuf, reason: String },
    /// There is a configuration for everyone, and none of this user.
    #[error(
        "{path} is in force, and a configuration of your own would take its place with all that it sets: name the file to change with --config"
    )]
    SystemWide { path: PathBuf },
    /// Neither of the places where a configuration may be kept is known.
    #[error("no place for the configuration: set HOME or XDG_CONFIG_HOME, or name it with --config")]
    NoConfigDirectory,
    /// A file is not what it must be.
    #[error("cannot use {path}: {reason}")]
    Unusable { path: PathBuf, reason: String },
    /// What is written of authorization servers cannot be used.
    #[error("cannot use {path}: [http.oauth]: {fault}")]
    Oauth { path: PathBuf, fault: OauthFault },
    /// A user who may come in is not known.
    #[error("cannot use {path}: {source}")]
    Users { path: PathBuf, source: UsersError },
    /// Neither of the places where state may be kept is known.
    #[error(
        "no place to keep the audit log: set HOME, XDG_STATE_HOME or STATE_DIRECTORY, or audit.directory in the configuration"
    )]
    NoStateDirectory,
    /// Neither of the places where a policy may be kept is known.
    #[error("no place for the policy: set HOME or XDG_CONFIG_HOME, or name it with --policy")]
    NoPolicyDirectory,
}

impl From<ReadError> for ConfigError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreadable { path, source } => Self::Unreadable { path, source },
            ReadError::Unusable { path, reason } => Self::Unusable { path, reason },
        }
    }
}

impl ConfigError {
    /// What is wrong, without lines of the file: they may have what must be seen nowhere else.
    pub(crate) fn without_excerpts(&self) -> String {
        match self {
            Self::Faults(Diagnostics(faults)) => {
                let files: BTreeSet<&str> = faults.iter().map(Diagnostic::path).collect();
                let files = files.into_iter().collect::<Vec<_>>().join(", ");
                format!("{} faults in {files}; the log on standard error has them", faults.len())
            }
            other => other.to_string(),
        }
    }
}
