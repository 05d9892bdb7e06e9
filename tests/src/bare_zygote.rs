//! A zygote (fork server for workers) that a test or a benchmark uses without a supervisor. A test forks workers itself,
//! because a supervisor refuses workers whose sandbox lacks a layer, and the test needs such workers.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lockhouse_protocol::zygote_messages::ZYGOTE_FRAME_BYTES_MAX;
use lockhouse_protocol::{
    ConversationLimits, ExecutionId, Exit, FRAME_OVERHEAD_BYTES, Finding, FrameDecoder, FromWorker,
    FromZygote, Job, Outcome, PythonPackages, SandboxProfile, ToWorker, ToZygote, frame,
};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, setsockopt,
    socketpair, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// The time limit of an attacking program in seconds, after which its worker is killed.
const ATTACK_SECONDS: i64 = 5;
/// The memory limit of a worker, in bytes. Attacks need about a megabyte.
const MEMORY_BYTES: u64 = 64 * 1024 * 1024;
const LIMITS: ConversationLimits =
    ConversationLimits { calls: 10, parallel_calls: 10, output_bytes: 1 << 20, frame_bytes: 1 << 20 };

/// The limits of workers that run programs: those that Lockhouse has by default.
const PROGRAM_MEMORY_BYTES: u64 = 256 * 1024 * 1024;
const PROGRAM_LIMITS: ConversationLimits = ConversationLimits {
    calls: 1_000,
    parallel_calls: 64,
    output_bytes: 1 << 20,
    frame_bytes: 8 * 1024 * 1024 + FRAME_OVERHEAD_BYTES,
};

/// The interpreter that Lockhouse uses unless its configuration names another one.
const PYTHON: &str = "/usr/bin/python3";
/// Loads the Python engine as Lockhouse does.
const PYTHON_ENTRY: &str = "\
import sys
from importlib import machinery, util
loader = machinery.ExtensionFileLoader('_lockhouse', sys.argv[1])
sys.argv, sys.orig_argv = [''], ['']
module = util.module_from_spec(util.spec_from_loader('_lockhouse', loader))
loader.exec_module(module)
sys.modules['_lockhouse'] = module
module.zygote()
";

/// A zygote process that has prepared its language engine and accepts fork requests.
#[derive(Debug)]
pub struct BareZygote {
    socket: OwnedFd,
    child: Child,
    limits: ConversationLimits,
    /// The sandbox protections that the zygote reports about this host.
    pub findings: Vec<Finding>,
}

/// How the run of a program in a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The program returned this value, as JSON.
    Value(String),
    /// The worker process exited or was killed by a signal.
    Exited(Exit),
    /// The program exceeded its time limit.
    TimedOut,
    /// The worker sent an unexpected message; the text shows the message.
    Other(String),
}

impl BareZygote {
    /// Starts the worker program `program` as a zygote and waits until it reports that it is prepared. `user` starts
    /// the program under another user id, which requires root.
    ///
    /// # Panics
    /// If the zygote cannot be started or does not report that it is prepared.
    #[must_use]
    pub fn start(program: &Path, arguments: &[&str], user: Option<u32>) -> Self {
        Self::with_limits(program, arguments, user, LIMITS, MEMORY_BYTES)
    }

    /// Starts the zygote of a language, as [`start`](Self::start) does. `engines` is the directory of `lockhouse-worker`
    /// and `liblockhouse_python.so`.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn of_language(language: &str, engines: &Path) -> Self {
        let extension = engines.join("liblockhouse_python.so").display().to_string();
        let (program, arguments) = match language {
            "python" => (PYTHON.into(), vec!["-I", "-B", "-c", PYTHON_ENTRY, &extension]),
            _ => (engines.join("lockhouse-worker"), Vec::new()),
        };
        Self::with_limits(&program, &arguments, None, PROGRAM_LIMITS, PROGRAM_MEMORY_BYTES)
    }

    fn with_limits(
        program: &Path,
        arguments: &[&str],
        user: Option<u32>,
        limits: ConversationLimits,
        memory_bytes: u64,
    ) -> Self {
        let kind = (AddressFamily::Unix, SockType::SeqPacket);
        let (socket, theirs) =
            socketpair(kind.0, kind.1, None, SockFlag::SOCK_CLOEXEC).expect("a socket pair");
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(60)).expect("a timeout");
        let mut command = Command::new(program);
        command.args(arguments).env_clear().current_dir("/").stdin(Stdio::from(theirs));
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let child = command.stdout(Stdio::null()).spawn().expect("the zygote starts");
        let profile = SandboxProfile {
            cpu_seconds: 10,
            memory_bytes,
            unprivileged_id: (user.is_none() && nix::unistd::geteuid().is_root()).then_some(61_500),
            preload: Vec::new(),
            packages: PythonPackages::none(),
            denied_modules: Vec::new(),
            limits,
        };
        let mut zygote = Self { socket, child, limits, findings: Vec::new() };
        zygote.send(&ToZygote::Prepare(profile));
        match zygote.receive().0 {
            FromZygote::Prepared { findings, .. } => zygote.findings = findings,
            other => panic!("{} {arguments:?}: {other:?}", program.display()),
        }
        zygote
    }

    /// Runs the program `code` in a newly forked worker and waits for the worker's exit. A worker that has not exited
    /// after the outcome or the time limit is killed.
    ///
    /// # Panics
    /// If the zygote breaks the protocol.
    #[must_use]
    pub fn run(&self, code: &str) -> End {
        let (pid, channel) = self.fork();
        channel.set_read_timeout(Some(Duration::from_secs(ATTACK_SECONDS as u64))).expect("a timeout");
        let ended = self.converse(&channel, code);
        drop(channel);
        let exit = self.kill(pid);
        ended.unwrap_or(End::Exited(exit))
    }

    /// Forks a worker. Returns its process id and the channel to it.
    ///
    /// # Panics
    /// If the zygote breaks the protocol.
    #[must_use]
    pub fn fork(&self) -> (i32, UnixStream) {
        self.request_fork(false);
        let (FromZygote::Forked { pid }, mut descriptors) = self.receive() else { panic!("no fork") };
        (pid, UnixStream::from(descriptors.remove(0)))
    }

    /// Requests the fork of a worker; `warm` makes the worker run a warm-up program before it reports that it is ready.
    /// [`receive`](Self::receive) returns the worker.
    ///
    /// # Panics
    /// If the zygote has ended.
    pub fn request_fork(&self, warm: bool) {
        self.send(&ToZygote::Fork { warm, session: false });
    }

    /// Kills a worker, which may have exited already, and returns how it exited.
    ///
    /// # Panics
    /// If the zygote breaks the protocol.
    pub fn kill(&self, pid: i32) -> Exit {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        let (FromZygote::Exited { exit, .. }, _) = self.receive() else { panic!("no end") };
        exit
    }

    /// Sends the code to the worker and waits for the outcome of the run. Returns `None` when the worker closes the
    /// channel before it sends an outcome.
    fn converse(&self, mut channel: &UnixStream, code: &str) -> Option<End> {
        let mut decoder = FrameDecoder::new(self.limits.frame_bytes);
        let mut buffer = [0; 4096];
        loop {
            while let Some(message) = decoder.next::<FromWorker>().expect("a frame") {
                match message {
                    FromWorker::Ready => {
                        let job = Job {
                            execution: ExecutionId(1),
                            code: code.to_owned(),
                            servers: Vec::new(),
                            session: false,
                            check_only: false,
                            tools: Vec::new(),
                            files: Vec::new(),
                            left_out: Vec::new(),
                        };
                        let job =
                            frame::encode(&ToWorker::Run(job), self.limits.frame_bytes).expect("a frame");
                        channel.write_all(&job).ok()?;
                    }
                    FromWorker::Done(Outcome::Value(Some(json))) => {
                        return Some(End::Value(String::from_utf8(json).expect("text")));
                    }
                    other => return Some(End::Other(format!("{other:?}"))),
                }
            }
            match channel.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => decoder.push(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Some(End::TimedOut),
                Err(_) => return None,
            }
        }
    }

    fn send(&self, message: &ToZygote) {
        let frame = frame::encode(message, ZYGOTE_FRAME_BYTES_MAX).expect("a frame");
        let parts = [IoSlice::new(&frame)];
        sendmsg::<()>(self.socket.as_raw_fd(), &parts, &[], MsgFlags::MSG_NOSIGNAL, None).expect("sent");
    }

    /// Waits for the next message of the zygote. A forked worker comes with two descriptors: its socket and its pidfd.
    ///
    /// # Panics
    /// If the zygote breaks the protocol or has ended.
    #[allow(unsafe_code, reason = "Descriptors arrive as bare numbers")]
    #[must_use]
    pub fn receive(&self) -> (FromZygote, Vec<OwnedFd>) {
        let mut buffer = vec![0; ZYGOTE_FRAME_BYTES_MAX as usize];
        let mut space = nix::cmsg_space!([RawFd; 2]);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message =
            recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut space), flags).expect("an answer");
        let mut descriptors = Vec::new();
        for control in message.cmsgs().expect("control messages") {
            if let ControlMessageOwned::ScmRights(numbers) = control {
                // SAFETY: the kernel has just opened these descriptors for this process.
                descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
            }
        }
        let bytes = message.bytes;
        (frame::decode(&buffer[..bytes], ZYGOTE_FRAME_BYTES_MAX).expect("a message"), descriptors)
    }
}

impl AsFd for BareZygote {
    /// Returns the socket, which is readable if [`receive`](Self::receive) does not wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for BareZygote {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
