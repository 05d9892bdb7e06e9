//! Starts the sealed processes of the HTTP service: this program, with an empty environment, one inherited socket and a pipe for
//! its log.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use lockhouse_pool::SealError;
use tokio::process::{Child, Command};

use super::process_log;
use super::process_name::ServiceProcess;
use crate::cli::http_front::ACCOUNT_OPTION;
use crate::cli::service_start::LOG_VARIABLE;

/// Why a process of the HTTP service cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    #[error("the {process} does not start: {status}")]
    Ended { process: ServiceProcess, status: ExitStatus },
    #[error("the {process} does not start: it does not answer")]
    Silent { process: ServiceProcess },
    #[error("the {process} ended: {status}")]
    Lost { process: ServiceProcess, status: ExitStatus },
    #[error(
        "no front can be started over {}: {error}; systemctl status lockhouse-http-front.socket shows why", .socket.display()
    )]
    Starter { socket: PathBuf, error: io::Error },
    #[error(transparent)]
    Unsealed(#[from] SealError),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The users as whom the processes run, if this process is root's: the two user ids after that of workers. Nobody else uses
/// them, so that neither process can reach workers or the other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceAccounts {
    pub(super) front: Option<u32>,
    pub(super) signer: Option<u32>,
}

impl ServiceAccounts {
    pub(super) fn beside(workers: Option<u32>) -> Self {
        Self {
            front: workers.and_then(|id| id.checked_add(1)),
            signer: workers.and_then(|id| id.checked_add(2)),
        }
    }
}

/// Starts a process, whose standard input is `socket`. Its log lines go to this process's log.
pub(super) fn spawn(
    process: ServiceProcess,
    account: Option<u32>,
    socket: OwnedFd,
    prepare: impl FnOnce(&mut Command),
) -> io::Result<Child> {
    // Also after an update of the package, the same build.
    let mut command = Command::new("/proc/self/exe");
    command.arg(process.command()).env_clear().kill_on_drop(true);
    if let Some(account) = account {
        command.arg(ACCOUNT_OPTION).arg(account.to_string());
    }
    if let Some(filter) = std::env::var_os(LOG_VARIABLE) {
        command.env(LOG_VARIABLE, filter);
    }
    command.stdin(socket).stdout(Stdio::null()).stderr(Stdio::piped());
    prepare(&mut command);
    let mut child = command.spawn()?;
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(process_log::relay(process, stderr));
    }
    Ok(child)
}
