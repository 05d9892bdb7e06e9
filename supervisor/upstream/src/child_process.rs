//! The process of an upstream server as a child of this one, and its process group.

use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use lockhouse_base::process_group;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::confine::{self, ConfinedCommand, SandboxPlaces};
use super::connection_status::ShutdownMethod;
use super::definition::ServerCommand;
use super::{NESTED_VARIABLE, package_runner, process_guard};

/// Environment variables of Lockhouse that a server's process inherits, in addition to those in its configuration.
const INHERITED: [&str; 9] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
/// Environment variables that the process of a server inherits which requirements fix or approve. A variable such as
/// `PATH` would let the user choose the code that it runs.
const REQUIRED_INHERITED: [&str; 2] = ["HOME", "LANG"];
/// `PATH` of the process of a server that requirements fix or approve, unless its configuration sets another one.
pub const REQUIRED_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Environment variables of such a server, with which Python, pip, npm and uv ignore the settings and modules in `HOME`,
/// which the user can write.
const REQUIRED_VARIABLES: [(&str, &str); 4] = [
    ("NPM_CONFIG_USERCONFIG", "/dev/null"),
    ("PIP_CONFIG_FILE", "/dev/null"),
    ("PYTHONNOUSERSITE", "1"),
    ("UV_NO_CONFIG", "1"),
];
/// Directory in which such a server starts, unless its configuration names another one. Programs run code of their
/// current directory (`python -m`, `npx`), and that of Lockhouse was chosen by the user.
const REQUIRED_DIRECTORY: &str = "/";
/// How long Lockhouse waits for a server's process to exit after closing the process's standard input, and once more
/// after SIGTERM.
const LEAVE: Duration = Duration::from_millis(500);

/// Lockhouse's ends of the standard input, output and error of a server.
pub(super) type ServerStreams = (ChildStdin, ChildStdout, ChildStderr);

/// How a process ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct ProcessEnd {
    /// Which step ended it.
    pub(super) method: ShutdownMethod,
    /// The status of wait(2), if the process exited by itself.
    pub(super) status: Option<i32>,
}

/// What becomes the standard input, output and error of a server.
pub(super) enum StandardStreams {
    /// Pipes, of which this process has the other ends.
    Pipes,
    /// Descriptors, in this order.
    Descriptors([OwnedFd; 3]),
}

/// A server's process. Dropping it kills the whole process group, since programs such as `npx` and `sh -c` run the
/// server as a child process.
pub(super) struct ChildProcess {
    /// The child process; `None` once it has been ended.
    child: Option<Child>,
    group: Option<Pid>,
}

impl ChildProcess {
    /// Starts a server. `places` are used by a sandbox with a profile, and the server's own folder by a package runner.
    pub(super) fn start(
        command: &ServerCommand,
        places: &SandboxPlaces,
        streams: StandardStreams,
    ) -> std::io::Result<Self> {
        let ConfinedCommand { mut process, environment } = match &command.confinement {
            Some(confinement) => {
                confine::confined(command, confinement, places).map_err(std::io::Error::other)?
            }
            None => ConfinedCommand { process: Command::new(&command.program), environment: Vec::new() },
        };
        process.args(&command.arguments).env_clear();
        let is_required = command.requirement.is_some();
        let inherited = if is_required { REQUIRED_INHERITED.as_slice() } else { &INHERITED };
        let inherited = inherited.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value)));
        process
            .envs(inherited)
            .envs(is_required.then_some(("PATH", REQUIRED_PATH)))
            .envs(REQUIRED_VARIABLES.into_iter().filter(|_| is_required))
            .envs(environment)
            .envs(&command.environment)
            .env(NESTED_VARIABLE, process_guard::start()?);
        let directory = match &command.directory {
            None if is_required => Some(REQUIRED_DIRECTORY.into()),
            _ => package_runner::directory(command, places.folder.as_deref())?,
        };
        if let Some(directory) = directory {
            process.current_dir(directory);
        }
        let [stdin, stdout, stderr] = match streams {
            StandardStreams::Pipes => [Stdio::piped(), Stdio::piped(), Stdio::piped()],
            StandardStreams::Descriptors(descriptors) => descriptors.map(Stdio::from),
        };
        process.stdin(stdin).stdout(stdout).stderr(stderr);
        // A separate process group, so that Ctrl-C in a terminal reaches only the supervisor. A confined process
        // starts its own session, which the leader of a group could not.
        if command.confinement.is_none() {
            process.process_group(0);
        }
        let child = process.kill_on_drop(true).spawn()?;
        let group = child.id().map(|id| Pid::from_raw(id as i32));
        Ok(Self { child: Some(child), group })
    }

    /// Returns this process's ends of the pipes; `None` if there are none, or if they were taken before.
    pub(super) fn streams(&mut self) -> Option<ServerStreams> {
        let child = self.child.as_mut()?;
        Some((child.stdin.take()?, child.stdout.take()?, child.stderr.take()?))
    }

    pub(super) async fn wait(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.wait().await.ok()
    }

    /// Ends a process whose standard input was closed: waits for its exit, then sends SIGTERM, then SIGKILL. Returns
    /// which of these ended the process, and the exit status if the process exited by itself.
    pub(super) async fn end(mut self) -> (ShutdownMethod, Option<ExitStatus>) {
        if let Ok(status) = tokio::time::timeout(LEAVE, self.wait()).await {
            return (ShutdownMethod::Exited, status);
        }
        self.signal(Signal::SIGTERM);
        let left = tokio::time::timeout(LEAVE, self.wait()).await;
        self.kill();
        let _ = self.wait().await;
        (if left.is_ok() { ShutdownMethod::Sigterm } else { ShutdownMethod::Sigkill }, None)
    }

    /// Kills the process group and also the child process itself: a sandboxed process is not in the group until it has
    /// started its own session.
    fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(child) = &mut self.child {
            let _ = child.start_kill();
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = killpg(group, signal);
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
        if let (Some(child), Some(group), Ok(runtime)) =
            (self.child.take(), self.group, tokio::runtime::Handle::try_current())
        {
            runtime.spawn(reap(child, group));
        }
    }
}

async fn reap(mut leader: Child, group: Pid) {
    let _ = leader.wait().await;
    process_group::reap(group).await;
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    #[tokio::test]
    async fn a_dropped_process_takes_its_children_along() {
        let mut process = ChildProcess::start(
            &ServerCommand {
                program: "sh".into(),
                arguments: ["-c", "sleep 7777 & echo $!; wait"].map(str::to_owned).into(),
                ..ServerCommand::default()
            },
            &SandboxPlaces::default(),
            StandardStreams::Pipes,
        )
        .expect("a shell");
        let (_, stdout, _) = process.streams().expect("streams");
        let line = BufReader::new(stdout).lines().next_line().await.expect("a line");
        let child = Pid::from_raw(line.and_then(|line| line.parse().ok()).expect("a number"));
        assert!(nix::sys::signal::kill(child, None).is_ok());
        drop(process);
        let gone = async {
            // Without a subreaper, init reaps the process, so a zombie is sufficient.
            let stat = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            while !(stat().is_empty() || stat().contains(") Z ")) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.expect("its end");
    }
}
