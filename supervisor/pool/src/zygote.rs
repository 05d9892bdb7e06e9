//! One zygote: start it, pass on what it says, and keep it until its last worker has ended.

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

use super::launch::{Launch, Purpose, ZygoteCommand};
use super::process::WorkerProcess;
use super::worker::{Death, Newborn, Worker};
use super::{PoolError, bounded};
use crate::protections;
use socket::ZygoteSocket;

/// Preloading Python takes a tenth of a second; a heavy package on a slow disk can take many.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a zygote that closed its socket may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// It is of another version, most likely.
const FOREIGN: &str = "it does not speak this version's protocol";

/// How often it is looked whether an orphaned worker has ended. They are killed before this begins.
const REAPING_PAUSE: Duration = Duration::from_millis(5);
const REAPINGS_MAX: u32 = 1_000;

/// What a prepared zygote says of itself.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub runtime: String,
    /// How each protection did.
    pub findings: Vec<Finding>,
    /// Protections that this host does not give, in words.
    pub reduced: Vec<String>,
}

/// What a zygote's task tells its pool.
#[derive(Debug)]
pub(super) enum Report {
    /// It can fork. Comes first, unless it did not start.
    Started(ZygoteHandle, Prepared),
    NotStarted(PoolError),
    /// A fork has become a sealed worker, or has not.
    Forked(Result<Worker, PoolError>, Purpose),
    /// A worker ended as one does that was attacked from within.
    Crashed,
    /// The zygote has ended, and with it every request and every worker.
    Gone(PoolError),
}

/// The way of one zygote's reports.
#[derive(Clone)]
pub(super) struct Reporter {
    generation: u32,
    reports: mpsc::Sender<(u32, Report)>,
}

impl Reporter {
    pub(super) fn new(generation: u32, reports: mpsc::Sender<(u32, Report)>) -> Self {
        Self { generation, reports }
    }

    /// Waits while the pool has not heard earlier ones. A pool that has ended needs none.
    async fn report(&self, report: Report) {
        let _ = self.reports.send((self.generation, report)).await;
    }
}

struct ForkRequest {
    warm: bool,
    purpose: Purpose,
}

/// Asks for forks. The zygote retires when this is dropped.
#[derive(Debug)]
pub(super) struct ZygoteHandle {
    forks: mpsc::Sender<ForkRequest>,
}

impl ZygoteHandle {
    pub(super) fn fork(&self, warm: bool, purpose: Purpose) {
        // The channel has room for all forks that a zygote may owe, so it is never full. A zygote that is gone says so
        // through its reports.
        let _ = self.forks.try_send(ForkRequest { warm, purpose });
    }
}

struct Zygote {
    socket: ZygoteSocket,
    child: Child,
    last_lines: LastLines,
    /// What the forks are for that it was asked for and has not answered. It answers in their order.
    asked: VecDeque<Purpose>,
    live: HashMap<i32, oneshot::Sender<Death>>,
}

/// Starts one, keeps it until its last worker has ended, and reports. It never owes more than `forks_max` forks.
///
/// The caller's thread must live as long as the zygote does: the kernel ends the zygote with the thread that started
/// it.
pub(super) async fn run(launch: Arc<Launch>, forks_max: usize, reporter: Reporter) {
    let mut zygote = match spawn(&launch.command) {
        Ok(zygote) => zygote,
        Err(error) => return reporter.report(Report::NotStarted(error)).await,
    };
    let prepared = tokio::time::timeout(PREPARE_TIMEOUT, zygote.prepare(&launch));
    let prepared = prepared.await.unwrap_or_else(|_| Err(PoolError::zygote("it did not get ready in time")));
    match prepared {
        Ok(prepared) => {
            let (forks, wanted) = mpsc::channel(forks_max);
            reporter.report(Report::Started(ZygoteHandle { forks }, prepared)).await;
            zygote.keep(wanted, &launch, &reporter).await;
        }
        Err(error) => {
            reporter.report(Report::NotStarted(error)).await;
            zygote.bury().await;
        }
    }
}

fn spawn(command: &ZygoteCommand) -> Result<Zygote, PoolError> {
    let (socket, theirs) = ZygoteSocket::pair()?;
    let mut process = Command::new(&command.program);
    // An empty environment: what is in it could be read by code through the interpreter's own copy.
    process.args(&command.arguments).env_clear().current_dir("/");
    // A terminal's Ctrl-C is for the supervisor: it decides how workers end.
    process.process_group(0);
    process.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child =
        process.spawn().map_err(|source| PoolError::Start { program: command.program.clone(), source })?;
    let last_lines = LastLines::default();
    if let Some(stderr) = child.stderr.take() {
        last_lines.follow("zygote".into(), stderr);
    }
    Ok(Zygote { socket, child, last_lines, asked: VecDeque::new(), live: HashMap::new() })
}

impl Zygote {
    async fn prepare(&mut self, launch: &Launch) -> Result<Prepared, PoolError> {
        // One that ends at once cannot be written to; what it says of itself is the better reason.
        let _ = self.socket.send(&ToZygote::Prepare(launch.command.profile.clone())).await;
        match self.socket.receive().await {
            Ok(Some((FromZygote::Prepared { runtime, mut findings }, _))) => {
                findings.iter_mut().for_each(|finding| finding.found = bounded(&finding.found));
                findings.push(launch.control_group());
                match protections::judge(&findings, launch.command.require_full) {
                    Ok(reduced) => Ok(Prepared { runtime, findings, reduced }),
                    Err(reason) => Err(PoolError::Unprotected { reason, findings }),
                }
            }
            Ok(Some((FromZygote::Refused { reason }, _))) => Err(PoolError::Refused(bounded(&reason))),
            Ok(Some(_)) => Err(PoolError::zygote(FOREIGN)),
            Ok(None) | Err(_) => Err(self.unusable(&launch.command).await),
        }
    }

    /// Why nothing that makes sense came: it has ended, or it is something else.
    async fn unusable(&mut self, command: &ZygoteCommand) -> PoolError {
        let Ok(status) = tokio::time::timeout(END_TIMEOUT, self.child.wait()).await else {
            return PoolError::zygote(FOREIGN);
        };
        let status = status.map(|status| status.to_string()).unwrap_or_default();
        let (program, told) = (command.program.display(), self.last_lines.told().await);
        PoolError::zygote(format!("{program} ended before it was ready ({status}){told}"))
    }

    async fn keep(
        mut self,
        mut wanted: mpsc::Receiver<ForkRequest>,
        launch: &Arc<Launch>,
        reporter: &Reporter,
    ) {
        let mut in_use = true;
        while in_use || !self.live.is_empty() {
            let result = tokio::select! {
                fork = wanted.recv(), if in_use => match fork {
                    Some(fork) => self.ask(fork).await,
                    None => { in_use = false; Ok(()) }
                },
                message = self.socket.receive() => match message {
                    Ok(message) => self.hear(message, launch, reporter).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = result {
                reporter.report(Report::Gone(error)).await;
                return self.bury().await;
            }
        }
    }

    async fn ask(&mut self, fork: ForkRequest) -> Result<(), PoolError> {
        let ForkRequest { warm, purpose } = fork;
        self.asked.push_back(purpose);
        let session = purpose == Purpose::Session;
        self.socket.send(&ToZygote::Fork { warm, session }).await.map_err(PoolError::system)
    }

    /// Ends the zygote, and reaps what it leaves: workers and probes die with it, and are then the supervisor's, who is their
    /// subreaper. None of them can leave its process group.
    async fn bury(mut self) {
        // Whoever waits for a worker learns at once that nobody will tell how it ended.
        self.live.clear();
        let group = self.child.id().map(|leader| Pid::from_raw(-(leader as i32)));
        // A zygote that only broke the protocol may live.
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

    async fn hear(
        &mut self,
        message: Option<(FromZygote, Vec<OwnedFd>)>,
        launch: &Arc<Launch>,
        reporter: &Reporter,
    ) -> Result<(), PoolError> {
        match message {
            Some((FromZygote::Forked { pid }, descriptors)) => {
                let purpose = self.answered()?;
                // Where this process may open no more, the kernel leaves them out. The worker ends as its channel closes.
                let Ok([socket, pidfd]) = <[OwnedFd; 2]>::try_from(descriptors) else {
                    let reason = "this process has no descriptor left for it (RLIMIT_NOFILE)".into();
                    reporter.report(Report::Forked(Err(PoolError::Worker(reason)), purpose)).await;
                    return Ok(());
                };
                let (exited, exit) = oneshot::channel();
                self.live.insert(pid, exited);
                let newborn = Newborn { process: WorkerProcess::new(pid, pidfd), socket, exit };
                let (launch, reporter) = (launch.clone(), reporter.clone());
                tokio::spawn(async move {
                    let admitted = Worker::admit(newborn, &launch).await;
                    reporter.report(Report::Forked(admitted, purpose)).await;
                });
                Ok(())
            }
            Some((FromZygote::ForkFailed { reason }, _)) => {
                let purpose = self.answered()?;
                let reason = format!("the kernel refused a fork: {}", bounded(&reason));
                reporter.report(Report::Forked(Err(PoolError::Worker(reason)), purpose)).await;
                Ok(())
            }
            Some((FromZygote::Exited { pid, exit, cpu_us, peak_memory_bytes }, _)) => {
                if is_crash(exit) {
                    reporter.report(Report::Crashed).await;
                }
                if let Some(exited) = self.live.remove(&pid) {
                    // Nobody may be interested any more.
                    let _ =
                        exited.send(Death { exit, cpu: Duration::from_micros(cpu_us), peak_memory_bytes });
                }
                Ok(())
            }
            Some(_) => Err(PoolError::zygote("it broke the protocol")),
            None => Err(PoolError::zygote("it ended")),
        }
    }

    /// What the fork was for that it tells of.
    fn answered(&mut self) -> Result<Purpose, PoolError> {
        self.asked.pop_front().ok_or_else(|| PoolError::zygote("it forked unasked"))
    }
}

/// Whether this may have been a try at the interpreter's memory or at the seal.
fn is_crash(exit: Exit) -> bool {
    use nix::sys::signal::Signal::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS};
    match exit {
        Exit::Signal(number) => {
            [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS].iter().any(|crash| *crash as i32 == number)
        }
        Exit::Status(status) => status == STACK_OVERFLOW_STATUS,
    }
}
