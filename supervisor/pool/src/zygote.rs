//! One zygote: start it, pass on what it says, and keep it until its last worker has ended.

use std::collections::{HashMap, VecDeque};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use lockhouse_base::child_stderr::LastLines;
use lockhouse_protocol::zygote::ZYGOTE_FRAME_BYTES_MAX;
use lockhouse_protocol::{Exit, Finding, FromZygote, STACK_OVERFLOW_STATUS, ToZygote, frame};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};

use super::launch::{Launch, Purpose, ZygoteCommand};
use super::process::WorkerProcess;
use super::worker::{Death, Newborn};
use super::{PoolError, bounded};
use crate::protections;

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

/// What a zygote has to tell.
pub(super) enum Told {
    Born(Newborn),
    /// A fork was refused.
    NotBorn(String, Purpose),
    /// A worker ended as one does that was attacked from within.
    Crashed,
    /// The zygote has ended, and with it every request and every worker.
    Gone(PoolError),
}

/// Asks for forks. The zygote retires when this is dropped.
#[derive(Debug)]
pub(super) struct ZygoteHandle {
    forks: mpsc::UnboundedSender<(bool, Purpose)>,
}

impl ZygoteHandle {
    pub(super) fn fork(&self, warm: bool, purpose: Purpose) {
        // A zygote that is gone says so through its events.
        let _ = self.forks.send((warm, purpose));
    }
}

struct Zygote {
    socket: AsyncFd<OwnedFd>,
    child: Child,
    last_lines: LastLines,
    /// What the forks are for that it was asked for and has not answered. It answers in their order.
    asked: VecDeque<Purpose>,
    live: HashMap<i32, oneshot::Sender<Death>>,
}

/// Starts one and waits until it can fork. What happens from then on is passed to `told`.
///
/// The caller's thread must live as long as the zygote does: the kernel ends the zygote with the thread that started
/// it.
pub(super) async fn start(
    launch: &Launch,
    told: impl Fn(Told) + Send + 'static,
) -> Result<(ZygoteHandle, Prepared), PoolError> {
    let mut zygote = spawn(&launch.command)?;
    let prepared = tokio::time::timeout(PREPARE_TIMEOUT, zygote.prepare(launch));
    let prepared = prepared.await.unwrap_or_else(|_| Err(PoolError::zygote("it did not get ready in time")));
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            tokio::spawn(zygote.bury());
            return Err(error);
        }
    };
    let (forks, wanted) = mpsc::unbounded_channel();
    tokio::spawn(zygote.keep(wanted, told));
    Ok((ZygoteHandle { forks }, prepared))
}

fn spawn(command: &ZygoteCommand) -> Result<Zygote, PoolError> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let (ours, theirs) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).map_err(PoolError::system)?;
    nix::fcntl::fcntl(&ours, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))
        .map_err(PoolError::system)?;
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
    Ok(Zygote { socket: watch(ours)?, child, last_lines, asked: VecDeque::new(), live: HashMap::new() })
}

#[allow(unsafe_code, reason = "tokio wants a promise about the descriptor")]
fn watch(socket: OwnedFd) -> Result<AsyncFd<OwnedFd>, PoolError> {
    // SAFETY: an `OwnedFd` has one number, which stays open until it is dropped.
    let watched = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE | Interest::WRITABLE) };
    watched.map_err(|error| PoolError::zygote(error.to_string()))
}

impl Zygote {
    async fn prepare(&mut self, launch: &Launch) -> Result<Prepared, PoolError> {
        // One that ends at once cannot be written to; what it says of itself is the better reason.
        let _ = self.send(&ToZygote::Prepare(launch.command.profile.clone())).await;
        match self.receive().await {
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

    async fn keep(mut self, mut wanted: mpsc::UnboundedReceiver<(bool, Purpose)>, told: impl Fn(Told)) {
        let mut in_use = true;
        while in_use || !self.live.is_empty() {
            let result = tokio::select! {
                fork = wanted.recv(), if in_use => match fork {
                    Some((warm, purpose)) => {
                        self.asked.push_back(purpose);
                        let session = purpose == Purpose::Session;
                        self.send(&ToZygote::Fork { warm, session }).await.map_err(PoolError::system)
                    }
                    None => { in_use = false; Ok(()) }
                },
                message = self.receive() => message.and_then(|message| self.hear(message, &told)),
            };
            if let Err(error) = result {
                told(Told::Gone(error));
                return self.bury().await;
            }
        }
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

    fn hear(
        &mut self,
        message: Option<(FromZygote, Vec<OwnedFd>)>,
        told: &impl Fn(Told),
    ) -> Result<(), PoolError> {
        match message {
            Some((FromZygote::Forked { pid }, descriptors)) => {
                let purpose = self.answered()?;
                // Where this process may open no more, the kernel leaves them out. The worker ends as its channel closes.
                let Ok([socket, pidfd]) = <[OwnedFd; 2]>::try_from(descriptors) else {
                    let reason = "this process has no descriptor left for it (RLIMIT_NOFILE)".into();
                    told(Told::NotBorn(reason, purpose));
                    return Ok(());
                };
                let (exited, exit) = oneshot::channel();
                self.live.insert(pid, exited);
                let process = WorkerProcess::new(pid, pidfd);
                told(Told::Born(Newborn { process, socket, exit, purpose }));
                Ok(())
            }
            Some((FromZygote::ForkFailed { reason }, _)) => {
                let reason = format!("the kernel refused a fork: {}", bounded(&reason));
                told(Told::NotBorn(reason, self.answered()?));
                Ok(())
            }
            Some((FromZygote::Exited { pid, exit, cpu_us, peak_memory_bytes }, _)) => {
                if is_crash(exit) {
                    told(Told::Crashed);
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

    async fn send(&self, message: &ToZygote) -> nix::Result<()> {
        let frame = frame::encode(message, ZYGOTE_FRAME_BYTES_MAX).map_err(|_| nix::Error::EMSGSIZE)?;
        let send = |socket: &OwnedFd| {
            sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&frame)], &[], MsgFlags::MSG_NOSIGNAL, None)
                .map_err(std::io::Error::from)
        };
        let sent = self.socket.async_io(Interest::WRITABLE, send).await;
        sent.map(drop).map_err(|error| nix::Error::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    async fn receive(&self) -> Result<Option<(FromZygote, Vec<OwnedFd>)>, PoolError> {
        let received = self.socket.async_io(Interest::READABLE, receive_datagram).await;
        let (bytes, descriptors) = received.map_err(|error| PoolError::zygote(error.to_string()))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let message = frame::decode(&bytes, ZYGOTE_FRAME_BYTES_MAX)
            .map_err(|error| PoolError::zygote(error.to_string()))?;
        Ok(Some((message, descriptors)))
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

#[allow(unsafe_code, reason = "Descriptors arrive as bare numbers")]
fn receive_datagram(socket: &OwnedFd) -> std::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    use std::os::fd::FromRawFd;
    let mut buffer = vec![0; ZYGOTE_FRAME_BYTES_MAX as usize];
    let mut space = nix::cmsg_space!([std::os::fd::RawFd; 2]);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just made these for us, and nobody else knows their numbers.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let bytes = message.bytes;
    buffer.truncate(bytes);
    Ok((buffer, descriptors))
}
