//! The launcher: a process in the session of a person, with the rights of that person and nothing else.

use std::convert::Infallible;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use lockhouse_base::directories::expand_home;
use lockhouse_protocol::ServerName;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::file_helper;
use super::messages::{LaunchReport, LaunchRequest, receive_request, send_report};
use crate::child_process::{ChildProcess, ProcessEnd, StandardStreams};
use crate::confine::{ConfineError, SandboxPlaces};
use crate::definition::{Endpoint, ServerCommand, ServerDefinition, ServerLimits};
use crate::program_digest::check_program;
use crate::start_fault::explain;
use crate::storage_paths::StoragePaths;

/// Starts servers for the engine, until the engine needs no further one and all of them have ended. `connect` opens a
/// connection to the engine. `paths` are the places of the person, with the folders of servers.
///
/// # Errors
/// The engine cannot be reached, or does not keep to the protocol.
pub async fn launch_servers(
    connect: impl AsyncFn() -> Result<UnixStream>,
    paths: &StoragePaths,
    home: Option<&Path>,
) -> Result<()> {
    let mut servers = JoinSet::new();
    let outcome = loop {
        let mut connection = match connect().await {
            Ok(connection) => connection,
            Err(error) => break Err(error),
        };
        let requested = tokio::select! {
            requested = receive_request(&mut connection) => requested,
            never = reap(&mut servers) => match never {},
        };
        match requested {
            Ok(Some((request, streams))) => {
                let (paths, home) = (paths.clone(), home.map(Path::to_owned));
                servers.spawn(async move {
                    serve(connection, request, streams, &paths, home.as_deref()).await;
                });
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    while servers.join_next().await.is_some() {}
    outcome
}

/// Forgets the tasks of servers that have ended.
async fn reap(servers: &mut JoinSet<()>) -> Infallible {
    while servers.join_next().await.is_some() {}
    std::future::pending().await
}

/// Starts a server, and ends it when the engine closes the connection.
async fn serve(
    mut connection: UnixStream,
    request: LaunchRequest,
    streams: [OwnedFd; 3],
    paths: &StoragePaths,
    home: Option<&Path>,
) {
    let started = match request {
        LaunchRequest::Server { name, command } => start(&name, command.in_home(home), streams, paths).await,
        LaunchRequest::FileHelper { read, write } => start_file_helper(&read, &write, streams),
    };
    let mut process = match started {
        Ok(process) => process,
        // The engine may have ended meanwhile; then nobody reads the report.
        Err(report) => return drop(send_report(&mut connection, &report).await),
    };
    if send_report(&mut connection, &LaunchReport::Started).await.is_err() {
        return;
    }
    let status = tokio::select! {
        status = process.wait() => Some(status),
        // The engine sends nothing more: it closes its end.
        _ = connection.read_u8() => None,
    };
    let (method, status) = match status {
        Some(status) => (crate::ShutdownMethod::Exited, status),
        None => process.end().await,
    };
    let status = status.map(std::os::unix::process::ExitStatusExt::into_raw);
    let _ = send_report(&mut connection, &LaunchReport::Ended(ProcessEnd { method, status })).await;
}

/// # Errors
/// The report, with the reason for the users of the server.
async fn start(
    name: &ServerName,
    command: ServerCommand,
    streams: [OwnedFd; 3],
    paths: &StoragePaths,
) -> std::result::Result<ChildProcess, LaunchReport> {
    if let Some(requirement) = &command.requirement {
        let checked = check_program(&command.program, requirement).await;
        checked.map_err(|error| LaunchReport::NotExecutable(error.to_string()))?;
    }
    let definition =
        ServerDefinition::new(Endpoint::Stdio(command.clone()), ServerLimits::default(), String::new());
    let places = paths.sandbox_places(name, &definition);
    ChildProcess::start(&command, &places, StandardStreams::Descriptors(streams)).map_err(|error| {
        match ConfineError::is_of_program(&error) {
            true => LaunchReport::NotExecutable(explain(&command, &error)),
            false => LaunchReport::Failed(explain(&command, &error)),
        }
    })
}

/// # Errors
/// The report, with the reason for the users of the server `files`.
fn start_file_helper(
    read: &[PathBuf],
    write: &[PathBuf],
    streams: [OwnedFd; 3],
) -> std::result::Result<ChildProcess, LaunchReport> {
    let command = file_helper::command(read, write);
    ChildProcess::start(&command, &SandboxPlaces::default(), StandardStreams::Descriptors(streams))
        .map_err(|error| LaunchReport::Failed(format!("the helper cannot be started: {error}")))
}

impl ServerCommand {
    /// Returns the command with the home directory in place of `~` at the beginning of its paths.
    fn in_home(self, home: Option<&Path>) -> Self {
        let expand = |path: PathBuf| expand_home(&path, home);
        let confinement = self.confinement.map(|confinement| confinement.in_home(home));
        let program = expand(PathBuf::from(self.program)).to_string_lossy().into_owned();
        Self { program, directory: self.directory.map(expand), confinement, ..self }
    }
}
