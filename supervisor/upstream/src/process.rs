//! The process of an upstream server over standard input and output: a child process of this one, or a process in the session
//! of the person whom the engine of the system serves.

use std::process::ExitStatus;

use super::child_process::ChildProcess;
use super::connection_status::ShutdownMethod;
use super::launcher::LaunchedProcess;

/// The process of a server. Dropping it kills the server and all that it has started.
pub(super) enum ServerProcess {
    Child(ChildProcess),
    Launched(LaunchedProcess),
}

impl ServerProcess {
    /// Waits until the process exits. `None` if its status is not known.
    pub(super) async fn wait(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(process) => process.wait().await,
            Self::Launched(process) => process.wait().await,
        }
    }

    /// Ends a process whose standard input was closed. Returns which step ended it, and the exit status if the process exited
    /// by itself.
    pub(super) async fn end(self) -> (ShutdownMethod, Option<ExitStatus>) {
        match self {
            Self::Child(process) => process.end().await,
            Self::Launched(process) => process.end().await,
        }
    }
}
