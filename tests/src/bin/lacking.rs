//! Runs a program as if the kernel of this host lacked features: `lacking landlock=2 namespaces -- lockhouse doctor`.
//!
//! A seccomp filter answers the affected system calls as such a kernel would, for the program and all of its
//! descendants. A filter cannot make a system call return the Landlock version. So this process stays alive and answers
//! queries of the version by seccomp user notification.
#![allow(unsafe_code, reason = "Raw seccomp")]
#![allow(clippy::expect_used, reason = "a program for tests, which ends with a panic")]

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};

/// A system call that fails, to simulate the lack of a kernel feature. The members are the number of the system call,
/// the index and value of the argument with which the call fails (`None` for any arguments), and the error number.
type Answer = (libc::c_long, Option<(u32, u32)>, i32);

const PR_SET_MDWE: u32 = 65;
const PR_GET_MDWE: u32 = 66;
const CREATE_RULESET_VERSION: u32 = 1;

fn answers(lack: &str) -> Vec<Answer> {
    let prctl = |option: u32| (libc::SYS_prctl, Some((0, option)), libc::EINVAL);
    match lack {
        "landlock" => vec![(libc::SYS_landlock_create_ruleset, None, libc::EOPNOTSUPP)],
        "namespaces" => vec![(libc::SYS_unshare, None, libc::EPERM)],
        // Ubuntu restricts namespaces this way: unshare is permitted, and mount in the new namespace is not.
        "mount" => vec![(libc::SYS_mount, None, libc::EACCES)],
        "mdwe" => vec![prctl(PR_SET_MDWE), prctl(PR_GET_MDWE)],
        "seccomp" => vec![(libc::SYS_seccomp, None, libc::ENOSYS)],
        "no_new_privs" => vec![prctl(libc::PR_SET_NO_NEW_PRIVS as u32)],
        "pidfd" => vec![(libc::SYS_pidfd_open, None, libc::ENOSYS)],
        "close_range" => vec![(libc::SYS_close_range, None, libc::ENOSYS)],
        "capset" => vec![(libc::SYS_capset, None, libc::EPERM)],
        "setresuid" => vec![(libc::SYS_setresuid, None, libc::EPERM)],
        other => panic!("{other:?} cannot be taken away"),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (lacks, command) = arguments.split_at(arguments.iter().position(|word| word == "--").expect("--"));
    let version = lacks.iter().find_map(|lack| lack.strip_prefix("landlock=")?.parse::<i64>().ok());
    let plain = lacks.iter().filter(|lack| !lack.contains('='));
    let program = filter(plain.flat_map(|lack| answers(lack)).collect(), version.is_some());
    let (ours, theirs) = UnixDatagram::pair().expect("a socket pair");
    // SAFETY: this process has one thread.
    match unsafe { fork() }.expect("a fork") {
        ForkResult::Child => {
            // A test ends the program by a signal to this one's parent.
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).expect("a signal");
            let listener = install(&program, version.is_some());
            if let Some(listener) = listener {
                pass(&theirs, &listener);
            }
            panic!("{}: {}", command[1], Command::new(&command[1]).args(&command[2..]).exec())
        }
        ForkResult::Parent { child } => {
            drop(theirs);
            if let Some(version) = version {
                answer_all(&taken(&ours), version);
            }
            ended(child)
        }
    }
}

/// Compiles a seccomp filter, in classic BPF, that gives the simulated answers. If `asks_for_version`, the filter also
/// passes queries of the Landlock version to this process.
fn filter(answers: Vec<Answer>, asks_for_version: bool) -> Vec<libc::sock_filter> {
    let step = |code: u16, jt: u8, jf: u8, k: u32| libc::sock_filter { code, jt, jf, k };
    let (load, jump_if_equal, finish) = (0x20, 0x15, 0x06);
    let mut program = Vec::new();
    let mut rule = |call: libc::c_long, argument: Option<(u32, u32)>, verdict: u32| {
        program.push(step(load, 0, 0, 0));
        program.push(step(jump_if_equal, 0, if argument.is_some() { 3 } else { 1 }, call as u32));
        if let Some((index, value)) = argument {
            program.push(step(load, 0, 0, 16 + 8 * index));
            program.push(step(jump_if_equal, 0, 1, value));
        }
        program.push(step(finish, 0, 0, verdict));
    };
    for (call, argument, errno) in answers {
        rule(call, argument, libc::SECCOMP_RET_ERRNO | errno as u32);
    }
    if asks_for_version {
        let flags = Some((2, CREATE_RULESET_VERSION));
        rule(libc::SYS_landlock_create_ruleset, flags, libc::SECCOMP_RET_USER_NOTIF);
    }
    program.push(step(finish, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

fn install(program: &[libc::sock_filter], listens: bool) -> Option<OwnedFd> {
    if !nix::unistd::geteuid().is_root() {
        nix::sys::prctl::set_no_new_privs().expect("no_new_privs");
    }
    let header = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let flags = if listens { libc::SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    // SAFETY: the pointer in the header is valid for the length in the header.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const header) };
    assert!(result >= 0, "seccomp: {}", Errno::last());
    // SAFETY: the kernel has just opened this descriptor for this process.
    listens.then(|| unsafe { OwnedFd::from_raw_fd(result as RawFd) })
}

fn pass(socket: &UnixDatagram, listener: &OwnedFd) {
    let rights = [listener.as_raw_fd()];
    let message = [ControlMessage::ScmRights(&rights)];
    sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(b"x")], &message, MsgFlags::empty(), None)
        .expect("sent");
}

fn taken(socket: &UnixDatagram) -> OwnedFd {
    let mut space = nix::cmsg_space!([RawFd; 1]);
    let (mut byte, flags) = ([0; 1], MsgFlags::MSG_CMSG_CLOEXEC);
    let mut parts = [IoSliceMut::new(&mut byte)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags).expect("received");
    let descriptor = message.cmsgs().expect("control messages").find_map(|control| match control {
        ControlMessageOwned::ScmRights(descriptors) => descriptors.first().copied(),
        _ => None,
    });
    // SAFETY: the kernel has just opened this descriptor for this process.
    unsafe { OwnedFd::from_raw_fd(descriptor.expect("a descriptor")) }
}

/// Answers all queries of the Landlock version with `version`, until no process with the filter is left.
fn answer_all(listener: &OwnedFd, version: i64) {
    // _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp).
    const RECEIVE: libc::c_ulong = 0xc050_2100;
    const SEND: libc::c_ulong = 0xc018_2101;
    loop {
        let mut polled = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::NONE).expect("poll");
        if polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP)) {
            return;
        }
        // SAFETY: both structures are valid when zeroed, and both outlive the calls in which the kernel accesses
        // them.
        unsafe {
            let mut question: libc::seccomp_notif = std::mem::zeroed();
            if libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut question) < 0 {
                continue;
            }
            let answer = libc::seccomp_notif_resp { id: question.id, val: version, error: 0, flags: 0 };
            libc::ioctl(listener.as_raw_fd(), SEND, &raw const answer);
        }
    }
}

fn ended(child: Pid) -> ExitCode {
    match waitpid(child, None).expect("its end") {
        WaitStatus::Exited(_, status) => ExitCode::from(status as u8),
        other => panic!("{other:?}"),
    }
}
