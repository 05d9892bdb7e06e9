//! `lockhouse http-front-starter`: starts the process of one front in an account of its own, for an engine that is not root's and so
//! cannot. systemd starts it for each connection of the engine to the socket of `lockhouse-http-front.socket`. It reads the
//! engine's messages alone, and ends its front with that connection.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, Stdio};

use lockhouse_link::PacketChannel;
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};

use super::http_front;
use super::service_start::{LOG_VARIABLE, take_standard_input};
use super::{UNAVAILABLE, print_error};

/// The first message of the engine, with two descriptors: the front's standard input, and the pipe for its log.
#[derive(Serialize, Deserialize)]
pub(super) struct FrontStart {
    /// The filter of the log, if it is not the default.
    pub(super) log_filter: Option<String>,
}

/// What the starter reports to the engine.
#[derive(Serialize, Deserialize)]
pub(super) enum StarterReport {
    Started {
        front: u32,
        /// The process of the starter.
        starter: u32,
    },
    /// The front has ended, with this wait status.
    Ended(i32),
}

#[derive(Debug, thiserror::Error)]
enum StarterError {
    #[error("standard input is not a connection of an engine: {0}")]
    Input(#[source] io::Error),
    #[error("the front: {0}")]
    Front(#[source] io::Error),
}

/// Starts a front, and returns when it or the engine has ended.
pub(super) async fn start_front() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(&error, UNAVAILABLE),
    }
}

async fn run() -> Result<(), StarterError> {
    let channel = take_standard_input().and_then(PacketChannel::new).map_err(StarterError::Input)?;
    let (start, descriptors) = channel.receive::<FrontStart>().await.map_err(StarterError::Input)?;
    let mut front = spawn(&start, descriptors).map_err(StarterError::Front)?;
    let started =
        StarterReport::Started { front: front.id().unwrap_or_default(), starter: std::process::id() };
    channel.send(&started, &[]).await.map_err(StarterError::Input)?;
    tokio::select! {
        _ = front.wait() => {}
        // The engine has ended, or wants the front to end.
        _ = channel.receive::<FrontStart>() => front.start_kill().map_err(StarterError::Front)?,
    }
    let status = front.wait().await.map_err(StarterError::Front)?;
    // If the engine has ended, nobody wants to know.
    let _ = channel.send(&StarterReport::Ended(status.into_raw()), &[]).await;
    Ok(())
}

fn spawn(start: &FrontStart, descriptors: Vec<OwnedFd>) -> io::Result<Child> {
    let [input, log]: [OwnedFd; 2] = descriptors.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(http_front::COMMAND).env_clear().kill_on_drop(true);
    if let Some(filter) = &start.log_filter {
        command.env(LOG_VARIABLE, filter);
    }
    command.stdin(input).stdout(Stdio::null()).stderr(log).spawn()
}
