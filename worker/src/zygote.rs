//! The zygote (fork server): loads a language engine once, forks sandboxed workers on request, and reaps
//! them.
//!
//! It has one thread, an empty environment, and the supervisor's socket as standard input.
#![allow(unsafe_code, reason = "fork, and wait4 for what a worker used")]

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use lockhouse_protocol::zygote_messages::{SESSION_CPU_SECONDS, ZYGOTE_FRAME_BYTES_MAX};
use lockhouse_protocol::{Exit, FromWorker, FromZygote, SandboxProfile, ToZygote, frame};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid};

use crate::channel::Channel;
use crate::engine::{Engine, EngineError, PreparedEngine};
use crate::warm_up_host::WarmUpHost;
use crate::{code_pages, signals, stack_overflow};
use lockhouse_sandbox::{self as sandbox, Layers, PreparedSandbox, SandboxError};

/// Why a zygote ended before its supervisor closed the socket.
#[derive(Debug, thiserror::Error)]
pub enum ZygoteError {
    /// A system call of the zygote failed.
    #[error("the zygote cannot go on: {0}")]
    System(#[from] nix::Error),
    /// A message of the supervisor could not be decoded.
    #[error(transparent)]
    Frame(#[from] frame::FrameError),
}

/// Why no worker can be forked on this host. The supervisor shows this error.
#[derive(Debug, thiserror::Error)]
enum PrepareError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("preloading started {0} threads, and a zygote must have one")]
    Threads(usize),
    #[error(transparent)]
    File(#[from] std::io::Error),
    #[error(transparent)]
    System(#[from] nix::Error),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}

/// Runs the zygote: forks workers of `engine` with the given sandbox `layers` until the supervisor closes the socket.
///
/// # Errors
/// [`ZygoteError`]; the supervisor sees that the socket is closed.
pub fn run(engine: &mut dyn Engine, layers: Layers) -> Result<(), ZygoteError> {
    let supervisor = getppid();
    if !sandbox::die_with_parent(supervisor) {
        return Ok(());
    }
    let socket = take_stdin()?;
    let mut buffer = vec![0; ZYGOTE_FRAME_BYTES_MAX as usize];
    let Some(ToZygote::Prepare(profile)) = receive(&socket, &mut buffer)? else { return Ok(()) };
    let (PreparedEngine { runtime, packages }, mut prepared) = match prepare(engine, &profile, layers) {
        Ok(ready) => ready,
        Err(error) => return send(&socket, &FromZygote::Refused { reason: error.to_string() }, &[]),
    };
    // Changing the user has cleared this setting. In namespaces the parent's number may read 0, so the result is
    // ignored.
    let _ = sandbox::die_with_parent(supervisor);
    let findings = match sandbox::probe(&prepared, &profile) {
        Ok(findings) => findings,
        Err(error) => return send(&socket, &FromZygote::Refused { reason: error.to_string() }, &[]),
    };
    settle_heap();
    code_pages::release();
    // The findings tell why, if this fails. Each worker then tries to install the whole filter, and ends if it cannot.
    let _ = sandbox::confine_zygote(&mut prepared);
    send(&socket, &FromZygote::Prepared { runtime, findings, packages }, &[])?;
    serve(&socket, &mut buffer, engine, &profile, &prepared)
}

fn prepare(
    engine: &mut dyn Engine,
    profile: &SandboxProfile,
    layers: Layers,
) -> Result<(PreparedEngine, PreparedSandbox), PrepareError> {
    ignore_file_signals();
    limit_malloc_arenas();
    let prepared = engine.prepare(profile)?;
    assert_single_thread()?;
    stack_overflow::prepare()?;
    Ok((prepared, sandbox::prepare(profile, layers)?))
}

/// Ignores SIGPIPE and SIGXFSZ, so that a write to a closed socket or beyond the file size limit returns an
/// error.
fn ignore_file_signals() {
    for signal in [Signal::SIGPIPE, Signal::SIGXFSZ] {
        // SAFETY: ignoring a signal installs no code.
        let _ = unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigIgn) };
    }
}

/// Limits malloc to one arena: each further one would reserve 64 MiB of the limited address space.
fn limit_malloc_arenas() {
    // SAFETY: sets a tunable of this process's allocator while it has one thread.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Prepares the heap for forks. The kernel copies each page that a worker writes to. Without this preparation, a worker
/// would write to many pages, because the free memory of the heap lies between the objects of the zygote. This function
/// gives whole free pages back to the kernel, and allocates the free pieces between objects without using them. What a
/// worker allocates then lies side by side in few pages.
fn settle_heap() {
    const PIECE_BYTES_MAX: usize = 1024;
    /// Size in bytes of a block that malloc must take from the end of the heap: larger than any free piece, and too
    /// small for a mapping of its own.
    const TOP_BYTES: usize = 120 * 1024;
    const PIECES_MAX: usize = 16 * 1024;
    // SAFETY: allocates memory that nobody uses.
    unsafe {
        libc::malloc_trim(0);
        let top = libc::malloc(TOP_BYTES).addr();
        for bytes in (8..PIECE_BYTES_MAX).step_by(16).rev() {
            for _ in 0..PIECES_MAX {
                if libc::malloc(bytes).addr() >= top {
                    break;
                }
            }
        }
    }
}

/// Fails if there is a second thread: fork copies only the calling thread, and the other's locks would stay locked in
/// every worker.
fn assert_single_thread() -> Result<(), PrepareError> {
    match std::fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(PrepareError::Threads(threads.saturating_sub(1))),
    }
}

fn serve(
    socket: &OwnedFd,
    buffer: &mut [u8],
    engine: &mut dyn Engine,
    profile: &SandboxProfile,
    prepared: &PreparedSandbox,
) -> Result<(), ZygoteError> {
    // SIGCHLD is unblocked only within ppoll, so that none is lost between reaping and waiting.
    let mut blocked = SigSet::empty();
    blocked.add(Signal::SIGCHLD);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&blocked), None)?;
    wake_on_child_exit()?;
    loop {
        reap(socket)?;
        let mut poll = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut poll, None, Some(SigSet::empty())) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        match receive(socket, buffer)? {
            Some(ToZygote::Fork { warm, session: false }) => {
                fork_worker(socket, engine, profile, prepared, warm)?;
            }
            Some(ToZygote::Fork { warm, session: true }) => {
                let profile = SandboxProfile { cpu_seconds: SESSION_CPU_SECONDS, ..profile.clone() };
                fork_worker(socket, engine, &profile, prepared, warm)?;
            }
            Some(ToZygote::Prepare(_)) => {}
            None => return Ok(()),
        }
    }
}

fn fork_worker(
    socket: &OwnedFd,
    engine: &mut dyn Engine,
    profile: &SandboxProfile,
    prepared: &PreparedSandbox,
    warm: bool,
) -> Result<(), ZygoteError> {
    let kind = (AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC);
    let (theirs, channel) = socketpair(kind.0, kind.1, None, kind.2)?;
    let zygote = getpid();
    engine.before_fork();
    // SAFETY: one thread, asserted; the child uses no lock that another thread could have held.
    match unsafe { fork() } {
        Err(errno) => {
            engine.after_fork_in_zygote();
            send(socket, &FromZygote::ForkFailed { reason: errno.desc().to_owned() }, &[])
        }
        Ok(ForkResult::Child) => run_worker(zygote, engine, profile, prepared, channel, warm),
        Ok(ForkResult::Parent { child }) => {
            engine.after_fork_in_zygote();
            let pidfd = pidfd_open(child)?;
            let descriptors = [theirs.as_raw_fd(), pidfd.as_raw_fd()];
            send(socket, &FromZygote::Forked { pid: child.as_raw() }, &descriptors)
        }
    }
}

fn run_worker(
    zygote: Pid,
    engine: &mut dyn Engine,
    profile: &SandboxProfile,
    prepared: &PreparedSandbox,
    channel: OwnedFd,
    warm: bool,
) -> ! {
    let refuse = |channel: Option<&OwnedFd>, reason: String| -> ! {
        let frame = frame::encode(&FromWorker::Refused { reason }, profile.limits.frame_bytes);
        if let (Ok(frame), Some(channel)) = (frame, channel) {
            let _ = nix::unistd::write(channel, &frame);
        }
        std::process::exit(71)
    };
    let unblocked = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    let handled = signals::install().and_then(|()| stack_overflow::install());
    if !sandbox::die_with_parent(zygote) || unblocked.is_err() || handled.is_err() {
        refuse(Some(&channel), "the zygote is gone, or signals cannot be handled".into());
    }
    engine.after_fork();
    let (sandboxed, channel) = match sandbox::enter(prepared, profile, channel) {
        Ok(sealed) => sealed,
        Err((error, channel)) => refuse(channel.as_ref(), error.to_string()),
    };
    let Ok(channel) = Channel::new(channel, profile.limits) else { std::process::exit(71) };
    // The channel lives as long as the process.
    let channel: &'static Channel = Box::leak(Box::new(channel));
    if warm {
        // An idle worker has time.
        engine.attach(&sandboxed, Box::leak(Box::new(WarmUpHost(channel))), profile.memory_bytes);
        engine.warm(&sandboxed);
    }
    engine.attach(&sandboxed, channel, profile.memory_bytes);
    let mut job = channel.receive_job();
    loop {
        let outcome = engine.run(&sandboxed, &job);
        if !job.session {
            channel.finish(outcome)
        }
        job = channel.finish_run(outcome);
        signals::clear_pending();
    }
}

fn reap(socket: &OwnedFd) -> Result<(), ZygoteError> {
    loop {
        let mut status = 0;
        // SAFETY: both pointers are to live values; zeros are a valid rusage, which the kernel overwrites.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
        match (pid, Errno::last()) {
            (0, _) | (-1, Errno::ECHILD) => return Ok(()),
            (-1, Errno::EINTR) => continue,
            (-1, errno) => return Err(errno.into()),
            _ => {}
        }
        let exit = match libc::WIFSIGNALED(status) {
            true => Exit::Signal(libc::WTERMSIG(status)),
            false => Exit::Status(libc::WEXITSTATUS(status)),
        };
        let micros =
            |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs();
        let cpu_us = micros(usage.ru_utime) + micros(usage.ru_stime);
        let peak_memory_bytes = usage.ru_maxrss.unsigned_abs() * 1024;
        send(socket, &FromZygote::Exited { pid, exit, cpu_us, peak_memory_bytes }, &[])?;
    }
}

/// Installs a handler for SIGCHLD, since ppoll returns only for handled signals.
fn wake_on_child_exit() -> nix::Result<()> {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, sigaction};
    extern "C" fn nothing(_: i32) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing.
    unsafe { sigaction(Signal::SIGCHLD, &action) }.map(drop)
}

fn pidfd_open(pid: Pid) -> Result<OwnedFd, ZygoteError> {
    use std::os::fd::FromRawFd;
    // SAFETY: no pointers; a fresh descriptor comes back, which has no other owner.
    let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    if pidfd < 0 {
        return Err(Errno::last().into());
    }
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(pidfd as RawFd) })
}

/// Moves the supervisor's socket from standard input to another descriptor and returns it. Opens `/dev/null` as
/// standard input.
fn take_stdin() -> Result<OwnedFd, ZygoteError> {
    use nix::fcntl::{OFlag, open};
    let stdin = std::io::stdin();
    let socket = stdin
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    let null = open("/dev/null", OFlag::O_RDWR | OFlag::O_CLOEXEC, nix::sys::stat::Mode::empty())?;
    nix::unistd::dup2_stdin(&null)?;
    Ok(socket)
}

/// Receives the next message of the supervisor. `buffer` must have room for the largest message. Returns `None` if the
/// supervisor has closed the socket.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Option<ToZygote>, ZygoteError> {
    let mut parts = [IoSliceMut::new(buffer)];
    let count = loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, None, MsgFlags::empty()) {
            Ok(message) => break message.bytes,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    match count {
        0 => Ok(None),
        _ => Ok(Some(frame::decode(&buffer[..count], ZYGOTE_FRAME_BYTES_MAX)?)),
    }
}

fn send(socket: &OwnedFd, message: &FromZygote, descriptors: &[RawFd]) -> Result<(), ZygoteError> {
    let frame = frame::encode(message, ZYGOTE_FRAME_BYTES_MAX)?;
    let rights = [ControlMessage::ScmRights(descriptors)];
    let control = if descriptors.is_empty() { &[][..] } else { &rights[..] };
    loop {
        match sendmsg::<()>(
            socket.as_raw_fd(),
            &[IoSlice::new(&frame)],
            control,
            MsgFlags::MSG_NOSIGNAL,
            None,
        ) {
            Err(Errno::EINTR) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}
