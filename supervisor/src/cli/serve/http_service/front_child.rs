//! How the engine's process starts the process of a front: as its child, or over the socket of a service that starts fronts in
//! accounts of their own.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use lockhouse_link::PacketChannel;
use lockhouse_pool::ServiceParent;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use tokio::net::unix::pipe;
use tokio::process::Child;
use tokio::time::timeout;

use super::process_log;
use super::process_name::ServiceProcess;
use super::service_process::{ProcessError, spawn};
use crate::cli::front_starter::{FrontStart, StarterReport};
use crate::cli::service_start::LOG_VARIABLE;

/// Maximum time until the service has started the process.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Where fronts are started.
#[derive(Clone, Debug)]
pub(super) enum FrontStarter {
    /// By this process, as this user. `None` if it is the user of this process.
    ThisProcess { account: Option<u32> },
    /// By a service of systemd, which listens at this socket.
    Service { socket: PathBuf },
}

/// The process of a front. It is killed when this value is dropped.
pub(super) enum FrontChild {
    Child {
        child: Child,
        account: Option<u32>,
    },
    /// The process is a child of the starter, and is killed when the channel to that is closed.
    OfStarter {
        channel: PacketChannel,
        pid: u32,
        starter: u32,
    },
}

impl FrontStarter {
    /// Starts a process, whose standard input is `input`. Its log lines go to this process's log.
    pub(super) async fn start(&self, input: OwnedFd) -> Result<FrontChild, ProcessError> {
        match self {
            Self::ThisProcess { account } => {
                let child = spawn(ServiceProcess::Front, *account, input, |_| {})?;
                Ok(FrontChild::Child { child, account: *account })
            }
            Self::Service { socket } => match timeout(START_TIMEOUT, start_over(socket, input)).await {
                Ok(Ok(started)) => Ok(started),
                Ok(Err(error)) => Err(ProcessError::Starter { socket: socket.clone(), error }),
                Err(_) => {
                    let error = ErrorKind::TimedOut.into();
                    Err(ProcessError::Starter { socket: socket.clone(), error })
                }
            },
        }
    }
}

/// Connects to the service, and lets it start a front.
async fn start_over(path: &Path, input: OwnedFd) -> io::Result<FrontChild> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let starter = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
    connect(starter.as_raw_fd(), &UnixAddr::new(path)?)?;
    let channel = PacketChannel::new(starter)?;
    let (log, lines) = pipe::pipe()?;
    let log_filter = std::env::var(LOG_VARIABLE).ok();
    let log = log.into_blocking_fd()?;
    channel.send(&FrontStart { log_filter }, &[input.as_fd(), log.as_fd()]).await?;
    match channel.receive::<StarterReport>().await?.0 {
        StarterReport::Started { front: pid, starter } => {
            tokio::spawn(process_log::relay(ServiceProcess::Front, lines));
            Ok(FrontChild::OfStarter { channel, pid, starter })
        }
        StarterReport::Ended(_) => Err(ErrorKind::InvalidData.into()),
    }
}

impl FrontChild {
    pub(super) fn pid(&self) -> u32 {
        match self {
            Self::Child { child, .. } => child.id().unwrap_or_default(),
            Self::OfStarter { pid, .. } => *pid,
        }
    }

    /// Returns what the seal of the process is verified with.
    pub(super) fn parent(&self) -> ServiceParent {
        match self {
            Self::Child { account, .. } => ServiceParent::ThisProcess { user: *account },
            Self::OfStarter { starter, .. } => ServiceParent::OtherAccount { pid: *starter },
        }
    }

    /// Waits until the process has ended.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Self::Child { child, .. } => child.wait().await,
            Self::OfStarter { channel, .. } => match channel.receive::<StarterReport>().await?.0 {
                StarterReport::Ended(status) => Ok(ExitStatus::from_raw(status)),
                StarterReport::Started { .. } => Err(ErrorKind::InvalidData.into()),
            },
        }
    }

    /// Kills the process.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        match self {
            Self::Child { child, .. } => child.start_kill(),
            Self::OfStarter { channel, .. } => channel.close_sending(),
        }
    }
}
