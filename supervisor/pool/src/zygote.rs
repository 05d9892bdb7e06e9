//! Runs one zygote, a process from which workers are forked: starts it, passes fork requests to it, and reports the
//! resulting workers to the pool, until the zygote's last worker has ended.

mod socket;

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_protocol::{
    Exit, Finding, FromZygote, LoadedPackage, PythonPackages, STACK_OVERFLOW_STATUS, ToZygote,
};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};

use super::launch_config::{ForkPurpose, LaunchConfig, ZygoteCommand};
use super::worker::{UnverifiedWorker, Worker, WorkerExitReport};
use super::worker_process::WorkerProcess;
use super::{PoolError, bounded};
use crate::{protections, seal_verification};
use socket::ZygoteSocket;

/// Maximum time from the start of a zygote until it is ready to fork. Preloading Python takes a tenth of a second,
/// heavy packages on a slow disk take much longer.
/// Bound: workers and programs.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time from the start of a zygote that loads packages until it is ready to fork. Dozens of packages take a
/// minute on a busy machine.
/// Bound: workers and programs.
const PREPARE_PACKAGES_TIMEOUT: Duration = Duration::from_secs(240);

/// Maximum time that the supervisor waits for a zygote process to exit after its socket was closed or carried an
/// invalid message.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// The error message for a zygote that sends no valid message. Most likely, the zygote belongs to another version of
/// Lockhouse.
const FOREIGN_PROTOCOL: &str = "it does not speak this version's protocol";

/// Pause between attempts to reap the killed workers of an ended zygote.
const REAPING_PAUSE: Duration = Duration::from_millis(5);
/// Maximum number of attempts to reap the killed workers of an ended zygote.
const REAPINGS_MAX: u32 = 1_000;

/// What a zygote that is ready to fork has reported about itself and the host.
#[derive(Clone, Debug)]
pub struct ZygoteInfo {
    /// The name and version of the language engine.
    pub runtime: String,
    /// The state of each sandbox protection of workers on this host.
    pub findings: Vec<Finding>,
    /// What was found about each optional protection that this host lacks, as texts for users.
    pub reduced: Vec<String>,
    /// The Python packages that the zygote has loaded.
    pub packages: Vec<LoadedPackage>,
}

/// A report from the task of a zygote to the task of its pool.
#[derive(Debug)]
pub(super) enum ZygoteReport {
    /// The zygote is ready to fork. This is the first report, unless the start failed.
    Started(ZygoteHandle, ZygoteInfo),
    /// The start of the zygote failed. No other report follows.
    NotStarted(PoolError),
    /// A fork resulted in a sandboxed worker, or failed.
    Forked(Result<Worker, PoolError>, ForkPurpose),
    /// A worker of the zygote crashed in a way that may be the result of an attack.
    Crashed,
    /// The zygote has ended unexpectedly or violated the protocol. Its workers are killed, and its pending forks will
    /// not be answered. Not sent when a retired zygote ends with its last worker.
    Gone(PoolError),
}

/// Sends the reports of one zygote to the task that owns the pool, each with the zygote's generation number.
#[derive(Clone)]
pub(super) struct Reporter {
    generation: u32,
    reports: mpsc::Sender<(u32, ZygoteReport)>,
}

impl Reporter {
    pub(super) fn new(generation: u32, reports: mpsc::Sender<(u32, ZygoteReport)>) -> Self {
        Self { generation, reports }
    }

    /// Sends a report; waits while the channel is full. If the pool's task has ended, the report is dropped.
    async fn send(&self, report: ZygoteReport) {
        let _ = self.reports.send((self.generation, report)).await;
    }
}

/// A request to fork one worker. `warm` makes the worker run a warm-up program before it gets code.
struct ForkRequest {
    warm: bool,
    purpose: ForkPurpose,
}

/// A handle for requesting forks from a zygote. Dropping the handle retires the zygote: it forks no more workers, and
/// ends when its last worker has ended.
#[derive(Debug)]
pub(super) struct ZygoteHandle {
    forks: mpsc::Sender<ForkRequest>,
}

impl ZygoteHandle {
    /// Requests one fork. A [`ZygoteReport::Forked`] reports the result.
    pub(super) fn fork(&self, warm: bool, purpose: ForkPurpose) {
        // The channel has capacity for the maximum number of pending forks, so it is never full. If the zygote has
        // ended, its [`ZygoteReport::Gone`] says so.
        let _ = self.forks.try_send(ForkRequest { warm, purpose });
    }
}

/// A running zygote process, its socket, and its workers.
struct Zygote {
    socket: ZygoteSocket,
    child: Child,
    /// The last lines that the zygote wrote to standard error, for error messages.
    last_lines: LastLines,
    /// The purposes of the requested forks that the zygote has not answered yet, in the order of the requests. The
    /// zygote answers in the same order.
    pending_purposes: VecDeque<ForkPurpose>,
    /// The workers that have not exited, by process id, each with the channel for its exit report.
    live: HashMap<i32, oneshot::Sender<WorkerExitReport>>,
}

/// Starts a zygote and serves it until its last worker has ended. At most `forks_max` forks are pending at one time.
///
/// The calling thread must live as long as the zygote: the kernel kills the zygote when the thread that started it
/// exits.
pub(super) async fn run(launch: Arc<LaunchConfig>, forks_max: usize, reporter: Reporter) {
    let mut zygote = match spawn(&launch.command) {
        Ok(zygote) => zygote,
        Err(error) => return reporter.send(ZygoteReport::NotStarted(error)).await,
    };
    let timeout = match launch.command.profile.packages {
        PythonPackages::Loaded(_) => PREPARE_PACKAGES_TIMEOUT,
        PythonPackages::Elsewhere(_) => PREPARE_TIMEOUT,
    };
    let prepared = tokio::time::timeout(timeout, zygote.prepare(&launch));
    let prepared = prepared.await.unwrap_or_else(|_| Err(PoolError::zygote("it did not get ready in time")));
    match prepared {
        Ok(prepared) => {
            let (forks, fork_requests) = mpsc::channel(forks_max);
            reporter.send(ZygoteReport::Started(ZygoteHandle { forks }, prepared)).await;
            zygote.serve(fork_requests, &launch, &reporter).await;
        }
        Err(error) => {
            reporter.send(ZygoteReport::NotStarted(error)).await;
            zygote.kill_and_reap().await;
        }
    }
}

/// Starts the zygote process with an empty environment and one end of a socket pair as standard input.
fn spawn(command: &ZygoteCommand) -> Result<Zygote, PoolError> {
    let (socket, theirs) = ZygoteSocket::pair()?;
    let mut process = Command::new(&command.program);
    // The environment is empty, since code could read its variables through the interpreter's copy.
    process.args(&command.arguments).env_clear().current_dir("/");
    // The zygote gets its own process group, so that Ctrl-C in a terminal reaches only the supervisor, which then ends
    // the workers.
    process.process_group(0);
    process.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child =
        process.spawn().map_err(|source| PoolError::Start { program: command.program.clone(), source })?;
    let last_lines = LastLines::default();
    if let Some(stderr) = child.stderr.take() {
        last_lines.follow("zygote".into(), stderr);
    }
    Ok(Zygote { socket, child, last_lines, pending_purposes: VecDeque::new(), live: HashMap::new() })
}

impl Zygote {
    /// Sends the sandbox profile to the zygote, waits until the zygote has tested its sandbox, and evaluates the
    /// findings.
    async fn prepare(&mut self, launch: &LaunchConfig) -> Result<ZygoteInfo, PoolError> {
        // The write fails if the zygote exits at once. Then its exit status and its output explain the failure better.
        let _ = self.socket.send(&ToZygote::Prepare(launch.command.profile.clone())).await;
        match self.socket.receive().await {
            Ok(Some((FromZygote::Prepared { runtime, mut findings, mut packages }, _))) => {
                findings.iter_mut().for_each(|finding| finding.found = bounded(&finding.found));
                for package in &mut packages {
                    package.name = bounded(&package.name);
                    package.version = bounded(&package.version);
                }
                findings.push(launch.control_group());
                let reduced = match protections::evaluate(&findings, launch.command.require_full) {
                    Ok(reduced) => reduced,
                    Err(reason) => return Err(PoolError::Unprotected { reason, findings }),
                };
                if let Some(pid) = self.child.id() {
                    seal_verification::verify_zygote_limits(pid)?;
                }
                Ok(ZygoteInfo { runtime, findings, reduced, packages })
            }
            Ok(Some((FromZygote::Refused { reason }, _))) => Err(PoolError::Refused(bounded(&reason))),
            Ok(Some(_)) => Err(PoolError::zygote(FOREIGN_PROTOCOL)),
            Ok(None) | Err(_) => Err(self.start_failure(&launch.command).await),
        }
    }

    /// Waits for a zygote that sent no valid message to exit, and returns the error that explains this: the zygote has
    /// exited, or it is no zygote of this version of Lockhouse.
    async fn start_failure(&mut self, command: &ZygoteCommand) -> PoolError {
        let Ok(status) = tokio::time::timeout(END_TIMEOUT, self.child.wait()).await else {
            return PoolError::zygote(FOREIGN_PROTOCOL);
        };
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        let (program, error_clause) = (command.program.display(), self.last_lines.error_clause().await);
        PoolError::zygote(format!("{program} ended before it was ready ({status}){error_clause}"))
    }

    /// Passes fork requests to the zygote and handles its messages until it is retired and its last worker has ended,
    /// or until it fails.
    async fn serve(
        mut self,
        mut fork_requests: mpsc::Receiver<ForkRequest>,
        launch: &Arc<LaunchConfig>,
        reporter: &Reporter,
    ) {
        let mut in_use = true;
        while in_use || !self.live.is_empty() {
            let result = tokio::select! {
                fork = fork_requests.recv(), if in_use => match fork {
                    Some(fork) => self.request_fork(fork).await,
                    None => { in_use = false; Ok(()) }
                },
                message = self.socket.receive() => match message {
                    Ok(message) => self.handle_message(message, launch, reporter).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = result {
                reporter.send(ZygoteReport::Gone(error)).await;
                break;
            }
        }
        self.kill_and_reap().await;
    }

    /// Sends a fork request to the zygote.
    async fn request_fork(&mut self, fork: ForkRequest) -> Result<(), PoolError> {
        let ForkRequest { warm, purpose } = fork;
        self.pending_purposes.push_back(purpose);
        let session = purpose == ForkPurpose::Session;
        let sent = self.socket.send(&ToZygote::Fork { warm, session }).await;
        sent.map_err(|error| PoolError::zygote(error.to_string()))
    }

    /// Kills the zygote and reaps its descendants: the workers, and the processes that test the sandbox. The
    /// kernel kills them together with the zygote, and the supervisor must reap them as their subreaper. All are
    /// in the zygote's process group, which they cannot leave.
    async fn kill_and_reap(mut self) {
        // Dropping these channels tells tasks that wait for the exit report of a worker that none will come.
        self.live.clear();
        let group = self.child.id().map(|leader| Pid::from_raw(-(leader as i32)));
        // A zygote that violated the protocol may still be alive.
        let _ = self.child.kill().await;
        let Some(group) = group else { return };
        for _ in 0..REAPINGS_MAX {
            match waitpid(group, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => tokio::time::sleep(REAPING_PAUSE).await,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Handles a received message of the zygote; `None` means that the zygote has closed its socket. Reports forked and
    /// crashed workers to the pool. Fails if the zygote has ended or violated the protocol.
    async fn handle_message(
        &mut self,
        message: Option<(FromZygote, Vec<OwnedFd>)>,
        launch: &Arc<LaunchConfig>,
        reporter: &Reporter,
    ) -> Result<(), PoolError> {
        match message {
            Some((FromZygote::Forked { pid }, descriptors)) => {
                let purpose = self.next_fork_purpose()?;
                // If this process has reached its descriptor limit, the kernel omits descriptors from the message. The
                // worker then ends because its socket is closed.
                let Ok([socket, pidfd]) = <[OwnedFd; 2]>::try_from(descriptors) else {
                    let reason = "this process has no descriptor left for it (RLIMIT_NOFILE)".into();
                    reporter.send(ZygoteReport::Forked(Err(PoolError::Worker(reason)), purpose)).await;
                    return Ok(());
                };
                let (exited, exit) = oneshot::channel();
                self.live.insert(pid, exited);
                let newborn = UnverifiedWorker { process: WorkerProcess::new(pid, pidfd), socket, exit };
                let (launch, reporter) = (launch.clone(), reporter.clone());
                tokio::spawn(async move {
                    let admitted = Worker::admit(newborn, &launch).await;
                    reporter.send(ZygoteReport::Forked(admitted, purpose)).await;
                });
                Ok(())
            }
            Some((FromZygote::ForkFailed { reason }, _)) => {
                let purpose = self.next_fork_purpose()?;
                let reason = format!("fork failed: {}", bounded(&reason));
                reporter.send(ZygoteReport::Forked(Err(PoolError::Worker(reason)), purpose)).await;
                Ok(())
            }
            Some((FromZygote::Exited { pid, exit, cpu_us, peak_memory_bytes }, _)) => {
                if is_crash(exit) {
                    reporter.send(ZygoteReport::Crashed).await;
                }
                if let Some(exited) = self.live.remove(&pid) {
                    // The task that used the worker may have ended already.
                    let _ = exited.send(WorkerExitReport {
                        exit,
                        cpu: Duration::from_micros(cpu_us),
                        peak_memory_bytes,
                    });
                }
                Ok(())
            }
            Some(_) => Err(PoolError::zygote("it broke the protocol")),
            None => Err(PoolError::zygote("it ended")),
        }
    }

    /// Returns the purpose of the oldest unanswered fork request, which the zygote has now answered. Fails if there is
    /// none.
    fn next_fork_purpose(&mut self) -> Result<ForkPurpose, PoolError> {
        self.pending_purposes.pop_front().ok_or_else(|| PoolError::zygote("it forked without a request"))
    }
}

/// Whether the exit of a worker may be the result of an attack on the interpreter's memory or on the sandbox.
fn is_crash(exit: Exit) -> bool {
    use nix::sys::signal::Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS};
    match exit {
        Exit::Signal(number) => {
            [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS].iter().any(|crash| *crash as i32 == number)
        }
        Exit::Status(status) => status == STACK_OVERFLOW_STATUS,
    }
}
