//! Servers in the session of the person whom the engine of the system serves.
//!
//! The engine cannot start processes in the account of that person. A launcher in the person's session does: it connects to
//! the engine, and each of its connections is for one server. [`Launchers`] is the engine's side, [`launch_servers`] the
//! launcher.
//!
//! - The engine makes the pipes, and passes the server's ends to the launcher. It takes no descriptor: a pipe or a file of the
//!   person could block it.
//! - What the launcher reports is what the person's side says, and proves nothing. The person, and so the agent, can take its
//!   place, and read the command and the secrets of its servers.
//! - The end of the connection ends the server: neither survives the other.

mod file_helper;
mod launched_process;
mod messages;
mod session;

use std::sync::Arc;

use lockhouse_protocol::ServerName;
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::child_process::ServerStreams;
use super::definition::ServerCommand;
use messages::{LaunchReport, LaunchRequest};

pub use file_helper::FileHelperProcess;
pub(super) use launched_process::LaunchedProcess;
pub use session::launch_servers;

/// Why a server was not started in the session of the person, as a clause about the server.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(
        "it runs in the session of its user, and no launcher is connected there: an AI client of the user starts it with `lockhouse serve`"
    )]
    NoLauncher,
    #[error(
        "the launcher in the session of its user ended before it had started it, or did not answer in time"
    )]
    LauncherLost,
    #[error("its pipes cannot be made: {0}")]
    Pipes(std::io::Error),
    #[error("its command is too long for the launcher")]
    TooLong,
    #[error("as the launcher in the session of its user says: {0}")]
    Failed(String),
    /// It cannot be started with or without its sandbox.
    #[error("as the launcher in the session of its user says: {0}")]
    NotExecutable(String),
}

/// The connection of a launcher that waits for a server. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Launchers(Arc<WaitingLauncher>);

#[derive(Debug, Default)]
struct WaitingLauncher {
    connection: Mutex<Option<UnixStream>>,
    arrived: Notify,
}

impl Launchers {
    /// Adds a connection whose other end is a process of the person, as the kernel says. It is closed if another launcher
    /// waits already.
    pub fn add(&self, connection: UnixStream) {
        let mut waiting = self.0.connection.lock();
        if waiting.as_ref().is_some_and(is_open) {
            return;
        }
        *waiting = Some(connection);
        self.0.arrived.notify_one();
    }

    /// Starts a server in the session of the person. Waits for a launcher, which starts with an AI client of the person, and
    /// for its report, until `deadline`.
    pub(super) async fn start(
        &self,
        name: &ServerName,
        command: &ServerCommand,
        deadline: Instant,
    ) -> Result<(LaunchedProcess, ServerStreams), LaunchError> {
        self.launch(&LaunchRequest::Server { name: name.clone(), command: command.clone() }, deadline).await
    }

    async fn launch(
        &self,
        request: &LaunchRequest,
        deadline: Instant,
    ) -> Result<(LaunchedProcess, ServerStreams), LaunchError> {
        let mut missing = LaunchError::NoLauncher;
        loop {
            let Some(mut connection) = self.next(deadline).await else { return Err(missing) };
            let (pipes, streams) = launched_process::pipes().map_err(LaunchError::Pipes)?;
            match messages::send_request(&mut connection, request, pipes.each_ref()).await {
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
                    return Err(LaunchError::TooLong);
                }
                // The launcher has ended.
                Err(_) => continue,
                Ok(()) => drop(pipes),
            }
            match timeout_at(deadline, messages::receive_report(&mut connection)).await {
                Ok(Ok(LaunchReport::Started)) => return Ok((LaunchedProcess::new(connection), streams)),
                Ok(Ok(LaunchReport::Failed(reason))) => return Err(LaunchError::Failed(reason)),
                Ok(Ok(LaunchReport::NotExecutable(reason))) => {
                    return Err(LaunchError::NotExecutable(reason));
                }
                // It has ended, is stopped, or does not keep to the protocol.
                Ok(Ok(LaunchReport::Ended(_)) | Err(_)) | Err(_) => missing = LaunchError::LauncherLost,
            }
        }
    }

    /// Takes the connection of the next launcher. `None` if there is none before `deadline`.
    async fn next(&self, deadline: Instant) -> Option<UnixStream> {
        loop {
            if let Some(connection) = self.0.connection.lock().take() {
                return Some(connection);
            }
            timeout_at(deadline, self.0.arrived.notified()).await.ok()?;
        }
    }
}

/// Whether a launcher is at the other end. It sends nothing before it gets a request.
fn is_open(connection: &UnixStream) -> bool {
    let read = connection.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}
