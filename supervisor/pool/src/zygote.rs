//! Runs one zygote: starts it, relays its messages, and serves it until its last worker has ended.

mod socket;

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_protocol::{Exit, Finding, FromZygote, STACK_OVERFLOW_STATUS, ToZygote};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};

use super::launch_config::{ForkPurpose, LaunchConfig, ZygoteCommand};
use super::worker::{UnverifiedWorker, Worker, WorkerExitReport};
use super::worker_process::WorkerProcess;
use super::{PoolError, bounded};
use crate::protections;
use socket::ZygoteSocket;

/// Timeout for a zygote's preparation. Preloading Python takes a tenth of a second, heavy packages on a slow disk
/// much longer.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a zygote may take to exit after it closed its socket.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// The error message for a zygote that sends invalid messages, most likely because its version differs.
const FOREIGN_PROTOCOL: &str = "it does not speak this version's protocol";

/// Pause between attempts to reap orphaned workers, which have already been killed.
const REAPING_PAUSE: Duration = Duration::from_millis(5);
/// Maximum number of attempts to reap the orphaned workers of a zygote.
const REAPINGS_MAX: u32 = 1_000;

/// What a prepared zygote reports about itself and the host.
#[derive(Clone, Debug)]
pub struct ZygoteInfo {
    pub runtime: String,
    /// What the zygote found about each protection of workers on this host.
    pub findings: Vec<Finding>,
    /// The optional protections that this host lacks, as texts for users.
    pub reduced: Vec<String>,
}

/// A report of a zygote's task to its pool.
#[derive(Debug)]
pub(super) enum ZygoteReport {
    /// The zygote is ready to fork. The first report, unless the start failed.
    Started(ZygoteHandle, ZygoteInfo),
    NotStarted(PoolError),
    /// A fork became a sealed worker, or failed.
    Forked(Result<Worker, PoolError>, ForkPurpose),
    /// A worker crashed in a way that may be an attack.
    Crashed,
    /// The zygote has ended, with all pending forks and workers.
    Gone(PoolError),
}

/// Sends the reports of one zygote.
#[derive(Clone)]
pub(super) struct Reporter {
    generation: u32,
    reports: mpsc::Sender<(u32, ZygoteReport)>,
}

impl Reporter {
    pub(super) fn new(generation: u32, reports: mpsc::Sender<(u32, ZygoteReport)>) -> Self {
        Self { generation, reports }
    }

    /// Sends a report; waits while the channel is full. Reports to an ended pool are dropped.
    async fn send(&self, report: ZygoteReport) {
        let _ = self.reports.send((self.generation, report)).await;
    }
}

struct ForkRequest {
    warm: bool,
    purpose: ForkPurpose,
}

/// Requests forks from a zygote. Dropping it retires the zygote.
#[derive(Debug)]
pub(super) struct ZygoteHandle {
    forks: mpsc::Sender<ForkRequest>,
}

impl ZygoteHandle {
    pub(super) fn fork(&self, warm: bool, purpose: ForkPurpose) {
        // The channel has capacity for all pending forks, so it is never full. If the zygote has ended, its reports
        // say so.
        let _ = self.forks.try_send(ForkRequest { warm, purpose });
    }
}

struct Zygote {
    socket: ZygoteSocket,
    child: Child,
    last_lines: LastLines,
    /// The purposes of the forks that the zygote was asked for and has not answered yet, in the order of the
    /// requests. The zygote answers in this order.
    pending_purposes: VecDeque<ForkPurpose>,
    live: HashMap<i32, oneshot::Sender<WorkerExitReport>>,
}

/// Starts a zygote and serves it until its last worker has ended. At most `forks_max` forks are pending at one time.
///
/// The calling thread must live as long as the zygote: the kernel ends the zygote with the thread that started it.
pub(super) async fn run(launch: Arc<LaunchConfig>, forks_max: usize, reporter: Reporter) {
    let mut zygote = match spawn(&launch.command) {
        Ok(zygote) => zygote,
        Err(error) => return reporter.send(ZygoteReport::NotStarted(error)).await,
    };
    let prepared = tokio::time::timeout(PREPARE_TIMEOUT, zygote.prepare(&launch));
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

fn spawn(command: &ZygoteCommand) -> Result<Zygote, PoolError> {
    let (socket, theirs) = ZygoteSocket::pair()?;
    let mut process = Command::new(&command.program);
    // The environment is empty: code could read it through the interpreter's copy.
    process.args(&command.arguments).env_clear().current_dir("/");
    // A separate process group, so that Ctrl-C in a terminal reaches only the supervisor, which then ends the
    // workers.
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
    async fn prepare(&mut self, launch: &LaunchConfig) -> Result<ZygoteInfo, PoolError> {
        // The write fails if the zygote exits at once; its own output then is the better reason.
        let _ = self.socket.send(&ToZygote::Prepare(launch.command.profile.clone())).await;
        match self.socket.receive().await {
            Ok(Some((FromZygote::Prepared { runtime, mut findings }, _))) => {
                findings.iter_mut().for_each(|finding| finding.found = bounded(&finding.found));
                findings.push(launch.control_group());
                match protections::evaluate(&findings, launch.command.require_full) {
                    Ok(reduced) => Ok(ZygoteInfo { runtime, findings, reduced }),
                    Err(reason) => Err(PoolError::Unprotected { reason, findings }),
                }
            }
            Ok(Some((FromZygote::Refused { reason }, _))) => Err(PoolError::Refused(bounded(&reason))),
            Ok(Some(_)) => Err(PoolError::zygote(FOREIGN_PROTOCOL)),
            Ok(None) | Err(_) => Err(self.start_failure(&launch.command).await),
        }
    }

    /// Returns why the zygote sent no valid message: it has exited, or it is another program.
    async fn start_failure(&mut self, command: &ZygoteCommand) -> PoolError {
        let Ok(status) = tokio::time::timeout(END_TIMEOUT, self.child.wait()).await else {
            return PoolError::zygote(FOREIGN_PROTOCOL);
        };
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        let (program, error_clause) = (command.program.display(), self.last_lines.error_clause().await);
        PoolError::zygote(format!("{program} ended before it was ready ({status}){error_clause}"))
    }

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
                return self.kill_and_reap().await;
            }
        }
    }

    async fn request_fork(&mut self, fork: ForkRequest) -> Result<(), PoolError> {
        let ForkRequest { warm, purpose } = fork;
        self.pending_purposes.push_back(purpose);
        let session = purpose == ForkPurpose::Session;
        self.socket.send(&ToZygote::Fork { warm, session }).await.map_err(PoolError::system)
    }

    /// Kills the zygote and reaps its process group. Workers and probes die with the zygote, and this process, as
    /// their subreaper, must reap them. They cannot leave the process group.
    async fn kill_and_reap(mut self) {
        // Those who wait for a worker's exit learn at once that it will not be reported.
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

    async fn handle_message(
        &mut self,
        message: Option<(FromZygote, Vec<OwnedFd>)>,
        launch: &Arc<LaunchConfig>,
        reporter: &Reporter,
    ) -> Result<(), PoolError> {
        match message {
            Some((FromZygote::Forked { pid }, descriptors)) => {
                let purpose = self.next_fork_purpose()?;
                // At the descriptor limit the kernel omits descriptors from the message. The worker ends when its
                // channel closes.
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
                    // The receiver may be gone.
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

    /// Returns the purpose of the fork that the zygote has answered.
    fn next_fork_purpose(&mut self) -> Result<ForkPurpose, PoolError> {
        self.pending_purposes.pop_front().ok_or_else(|| PoolError::zygote("it forked without a request"))
    }
}

/// Whether the exit may be the result of an attack on the interpreter's memory or on the seal.
fn is_crash(exit: Exit) -> bool {
    use nix::sys::signal::Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS};
    match exit {
        Exit::Signal(number) => {
            [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS].iter().any(|crash| *crash as i32 == number)
        }
        Exit::Status(status) => status == STACK_OVERFLOW_STATUS,
    }
}
