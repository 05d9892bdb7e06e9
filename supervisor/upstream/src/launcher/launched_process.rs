//! The engine's handle on a process that a launcher has started.

use std::io::Result;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::stat::{Mode, fchmod};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::messages::{LaunchReport, receive_report};
use crate::child_process::{ProcessEnd, ServerStreams};
use crate::connection_status::ShutdownMethod;

/// How long the engine waits for the report that a process has ended. The launcher takes a second to end one.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// A process in the session of the person. Dropping it closes the connection, and the launcher ends the process.
pub(crate) struct LaunchedProcess {
    connection: OwnedWriteHalf,
    end: watch::Receiver<Option<ProcessEnd>>,
    reports: JoinHandle<()>,
}

impl LaunchedProcess {
    /// `connection` is that over which the launcher has reported the start.
    pub(super) fn new(connection: UnixStream) -> Self {
        let (reading, connection) = connection.into_split();
        let (sender, end) = watch::channel(None);
        Self { connection, end, reports: tokio::spawn(receive_end(reading, sender)) }
    }

    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        // The sender is dropped only after it has sent the end.
        let end = self.end.wait_for(Option::is_some).await.ok()?;
        end.and_then(|end| end.status).map(ExitStatus::from_raw)
    }

    pub(super) fn is_running(&self) -> bool {
        self.end.borrow().is_none()
    }

    pub(crate) async fn end(mut self) -> (ShutdownMethod, Option<ExitStatus>) {
        // It fails if the launcher has ended, and its servers with it.
        let _ = self.connection.shutdown().await;
        let status = timeout(END_TIMEOUT, self.wait()).await.ok().flatten();
        let method = self.end.borrow().map_or(ShutdownMethod::Sigkill, |end| end.method);
        (method, status)
    }
}

impl Drop for LaunchedProcess {
    fn drop(&mut self) {
        self.reports.abort();
    }
}

/// Waits for the report that the process has ended, or for the end of the launcher, which kills its servers.
async fn receive_end(mut connection: OwnedReadHalf, end: watch::Sender<Option<ProcessEnd>>) {
    let reported = match receive_report(&mut connection).await {
        Ok(LaunchReport::Ended(end)) => end,
        Ok(LaunchReport::Started | LaunchReport::Failed(_) | LaunchReport::NotExecutable(_)) | Err(_) => {
            ProcessEnd { method: ShutdownMethod::Sigkill, status: None }
        }
    };
    end.send_replace(Some(reported));
}

/// Makes the pipes of a server. Returns the server's ends and the engine's.
pub(super) fn pipes() -> Result<([OwnedFd; 3], ServerStreams)> {
    let (stdin, own_stdin) = std::io::pipe()?;
    let (own_stdout, stdout) = std::io::pipe()?;
    let (own_stderr, stderr) = std::io::pipe()?;
    // Another account than that of the engine may open them as /dev/stdin and /dev/stdout, as some programs do.
    fchmod(&stdin, Mode::from_bits_truncate(0o644))?;
    for written in [&stdout, &stderr] {
        fchmod(written, Mode::from_bits_truncate(0o622))?;
    }
    let streams = (
        ChildStdin::from_std(OwnedFd::from(own_stdin).into())?,
        ChildStdout::from_std(OwnedFd::from(own_stdout).into())?,
        ChildStderr::from_std(OwnedFd::from(own_stderr).into())?,
    );
    Ok(([stdin.into(), stdout.into(), stderr.into()], streams))
}
