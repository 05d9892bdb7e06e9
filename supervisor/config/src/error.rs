//! Errors of loading or editing the configuration.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lockhouse_access::UserLookupError;
use lockhouse_base::text_files::ReadError;
use lockhouse_policies::{Diagnostic, Diagnostics};

use super::oauth_settings::OauthError;

/// Why the configuration cannot be loaded or changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file has faults, each with its location in the file.
    #[error(transparent)]
    Faults(#[from] Diagnostics),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Unwritable { path: PathBuf, source: std::io::Error },
    /// A command did not change the configuration file, since the change would make the configuration invalid.
    #[error("{path} was not changed, since the result would not be valid:\n{reason}")]
    Refused { path: PathBuf, reason: String },
    /// A command did not change a file, since the audit log cannot record the change.
    #[error("{path} was not changed, because the audit log cannot record it: {reason}")]
    Unrecorded { path: PathBuf, reason: String },
    /// The configuration cannot be edited: only the system-wide file exists, and this user has no configuration file.
    #[error(
        "{path} is in use, and a configuration file of your own would replace all of it: name the file to change with --config"
    )]
    SystemWide { path: PathBuf },
    /// The policy cannot be edited: only the system-wide file exists, and this user has no policy file.
    #[error(
        "{path} is in use, and a policy of your own would replace all of it: name the file to change with --policy"
    )]
    SystemWidePolicy { path: PathBuf },
    /// There is no directory for the configuration file, since HOME and XDG_CONFIG_HOME are unset.
    #[error(
        "no directory for the configuration: set HOME or XDG_CONFIG_HOME, or name the file with --config"
    )]
    NoConfigDirectory,
    /// A file cannot be used because of its type, permissions or content.
    #[error("cannot use {path}: {reason}")]
    Unusable { path: PathBuf, reason: String },
    /// Requirements applied on this host before, and their file has disappeared.
    #[error(
        "{path} is missing, but this host was managed with it before ({marker} exists): restore the file, or if the host is no \
         longer managed, remove {marker} as root. Until then nothing is served"
    )]
    Unmanaged { path: PathBuf, marker: &'static str },
    /// Code runs for people in the system's engine only.
    #[error(
        "{path} says that code runs in the engine of this host only, which has an account of its own: run code through your AI \
         client, whose `lockhouse serve` uses that engine"
    )]
    SystemEngine { path: PathBuf },
    /// Requirements determine what a command would change.
    #[error("the administrator's requirements determine {key}, so this user cannot change it")]
    Determined { key: &'static str },
    /// The settings under `[http.oauth]` are invalid.
    #[error("cannot use {path}: [http.oauth]: {fault}")]
    Oauth { path: PathBuf, fault: OauthError },
    /// A user in the list `users` of `[http]` does not exist or cannot be looked up.
    #[error("cannot use {path}: {source}")]
    AllowedUsers { path: PathBuf, source: UserLookupError },
    /// There is no directory for the audit log, since no state directory is known and the configuration names none.
    #[error(
        "no directory for the audit log: set HOME, XDG_STATE_HOME or STATE_DIRECTORY, or audit.directory in the configuration"
    )]
    NoStateDirectory,
    /// A header for a destination of the audit log has no valid value.
    #[error("forward of [audit]: {destination}: the header {header} cannot be used: {reason}")]
    ForwardHeader { destination: String, header: String, reason: String },
    /// An entry of `notify` cannot be used.
    #[error("notify of [approvals]: entry {entry}: {reason}")]
    Notify { entry: usize, reason: String },
    #[error("link of [approvals]: expected an https URL, or an http URL of a loopback address")]
    NoticeLink,
    /// There is no directory for the policy file, since HOME and XDG_CONFIG_HOME are unset.
    #[error("no directory for the policy: set HOME or XDG_CONFIG_HOME, or name the file with --policy")]
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
    /// Returns the error message without lines of the faulty file, which may hold secrets.
    pub fn without_excerpts(&self) -> String {
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
