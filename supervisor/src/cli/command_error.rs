//! Why a command failed: for its exit status, and for the live page, which carries out commands.

use std::error::Error;
use std::process::ExitCode;

use super::command_audit_log::ChangeError;
use super::{UNAVAILABLE, USAGE, print_config_error, print_error};
use lockhouse_config::ConfigError;

/// Why a command failed, with the kind of the failure.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The arguments are not valid, or name something that does not exist.
    #[error("{0}")]
    Usage(Box<dyn Error>),
    /// What would be changed is not what was shown.
    #[error("{0}")]
    Stale(String),
    /// A file, a server or this host cannot be used.
    #[error("{0}")]
    Unavailable(Box<dyn Error>),
}

impl CommandError {
    pub(super) fn usage(error: impl Into<Box<dyn Error>>) -> Self {
        Self::Usage(error.into())
    }

    pub(super) fn unavailable(error: impl Into<Box<dyn Error>>) -> Self {
        Self::Unavailable(error.into())
    }

    /// Returns the error of a change that was not made: its own error, or why it was not recorded.
    pub(super) fn from_change(error: ChangeError<Self>) -> Self {
        match error {
            ChangeError::Failed(error) => error,
            unrecorded @ ChangeError::Unrecorded(_) => Self::unavailable(unrecorded.to_string()),
        }
    }

    /// Prints the error to stderr and returns the exit status.
    pub(super) fn print(&self) -> ExitCode {
        match self {
            Self::Config(error) => print_config_error(error),
            Self::Usage(_) => print_error(self, USAGE),
            Self::Stale(_) | Self::Unavailable(_) => print_error(self, UNAVAILABLE),
        }
    }
}
