//! The status of a run.

use serde::{Deserialize, Serialize};

/// How a run ended, as a machine-readable status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunStatus {
    Ok,
    /// The code ended with an error, or the request was refused before it had a worker.
    Error,
    Timeout,
    /// The run reached a limit on CPU time, memory, calls, lookups or output.
    Limit,
    /// The worker process died, or violated the protocol and was killed.
    Killed,
    Cancelled,
}

impl RunStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Limit => "limit",
            Self::Killed => "killed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the exit code of `lockhouse run` for this status.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Error => 1,
            Self::Timeout => 3,
            Self::Limit => 4,
            Self::Killed => 5,
            Self::Cancelled => 6,
        }
    }
}
