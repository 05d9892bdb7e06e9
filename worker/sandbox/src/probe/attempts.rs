//! System calls that the sandbox's self-test attempts. Most are made directly, as hostile native code would
//! make them.
#![allow(unsafe_code, reason = "Bare system calls")]

use std::fmt;
use std::os::fd::{FromRawFd, OwnedFd};

use lockhouse_protocol::{Finding, Protection, SandboxProfile};
use nix::errno::Errno;
use nix::unistd::{Pid, getppid};

use crate::{PreparedSandbox, descriptors, privileges};

/// Result of an attempted system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The system call was not attempted.
    #[default]
    NotMade,
    Succeeded,
    /// The kernel refused the system call with this error number.
    Refused(i32),
}

impl Attempt {
    fn from_result(result: libc::c_long) -> Self {
        if result < 0 { Self::Refused(Errno::last_raw()) } else { Self::Succeeded }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMade => out.write_str("not tried"),
            Self::Succeeded => out.write_str("succeeded"),
            Self::Refused(errno) => write!(out, "refused ({})", Errno::from_raw(*errno)),
        }
    }
}

/// Results of those attempts that Landlock must refuse. The self-test makes these attempts twice: before it applies
/// Landlock, when they must succeed, and afterwards.
#[derive(Debug, Default)]
pub(super) struct LandlockAttempts {
    pub(super) open: Attempt,
    pub(super) bind: Attempt,
    pub(super) signal: Attempt,
}

impl LandlockAttempts {
    pub(super) fn now() -> Self {
        Self { open: open_root(), bind: bind_tcp(), signal: signal_zygote() }
    }
}

fn open_root() -> Attempt {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path is a live C string.
    let opened = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, c"/".as_ptr(), flags) };
    closed(opened)
}

/// Attempts to bind a TCP socket to any free port of all addresses, which works even if the loopback interface is down.
fn bind_tcp() -> Attempt {
    with_address(libc::SOCK_STREAM, [0; 4], 0, libc::bind)
}

/// Attempts to connect a UDP socket to the loopback address. This sends nothing, but requires a network
/// route.
fn route_to_itself() -> Attempt {
    with_address(libc::SOCK_DGRAM, [127, 0, 0, 1], 9, libc::connect)
}

type WithAddress = unsafe extern "C" fn(i32, *const libc::sockaddr, libc::socklen_t) -> i32;

fn with_address(kind: i32, address: [u8; 4], port: u16, call: WithAddress) -> Attempt {
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Attempt::from_result(-1);
    }
    // SAFETY: the descriptor was made above and has no other owner.
    let _closed_at_the_end = unsafe { OwnedFd::from_raw_fd(socket) };
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address) },
        sin_zero: [0; 8],
    };
    // SAFETY: the address is live and has the given length.
    Attempt::from_result(
        unsafe { call(socket, (&raw const address).cast(), size_of_val(&address) as u32) }.into(),
    )
}

fn signal_zygote() -> Attempt {
    // SAFETY: no pointers; signal 0 only asks.
    Attempt::from_result(unsafe { libc::syscall(libc::SYS_kill, getppid().as_raw(), 0) })
}

fn closed(descriptor: libc::c_long) -> Attempt {
    let attempt = Attempt::from_result(descriptor);
    if attempt == Attempt::Succeeded {
        // SAFETY: the descriptor was made by the caller and has no other owner.
        drop(unsafe { OwnedFd::from_raw_fd(descriptor as i32) });
    }
    attempt
}

/// Checks the protections that the zygote applied for all of its workers, before the test worker applies its own.
pub(super) fn before_the_seal(prepared: &PreparedSandbox, profile: &SandboxProfile) -> Vec<Finding> {
    vec![
        ordinary_user(profile),
        Finding::from_result(
            Protection::NoCapabilities,
            match privileges::has_none() {
                Ok(true) => Ok("every set is empty".into()),
                Ok(false) => Err("some are left".into()),
                Err(error) => Err(error.to_string()),
            },
        ),
        empty_root(prepared),
        no_network(prepared),
    ]
}

fn ordinary_user(profile: &SandboxProfile) -> Finding {
    let user = nix::unistd::getresuid().map(|ids| [ids.real, ids.effective, ids.saved]);
    let outcome = match user {
        Ok(ids) if ids.iter().any(|id| id.is_root()) => Err("the user is root".into()),
        Ok([id, ..]) if profile.unprivileged_id.is_some_and(|wanted| wanted != id.as_raw()) => {
            Err(format!("the user is {id}"))
        }
        Ok([id, ..]) => Ok(format!("user {id}")),
        Err(errno) => Err(errno.to_string()),
    };
    Finding::from_result(Protection::OrdinaryUser, outcome)
}

fn empty_root(prepared: &PreparedSandbox) -> Finding {
    let protection = Protection::EmptyRoot;
    if let Some(reason) = &prepared.namespaces_refused {
        return Finding::absent(protection, format!("no namespaces ({reason})"));
    }
    let entries = std::fs::read_dir("/").map(Iterator::count);
    let written = std::fs::write("/lockhouse", "").map_err(|error| error.raw_os_error());
    match (entries, written) {
        (Ok(0), Err(_)) => Finding::holds(protection, "the root is empty and cannot be written"),
        (entries, written) => Finding::broken(protection, format!("root: {entries:?}, write: {written:?}")),
    }
}

fn no_network(prepared: &PreparedSandbox) -> Finding {
    let protection = Protection::NoNetwork;
    if let Some(reason) = &prepared.namespaces_refused {
        return Finding::absent(protection, format!("no namespaces ({reason})"));
    }
    let outcome = match route_to_itself() {
        Attempt::Refused(errno) => Ok(format!("no route even to itself ({})", Errno::from_raw(errno))),
        _ => Err("there is a route to 127.0.0.1".into()),
    };
    Finding::from_result(protection, outcome)
}

pub(super) fn descriptors() -> Finding {
    let unexpected = descriptors::unexpected();
    Finding::from_result(
        Protection::Descriptors,
        if unexpected.is_empty() {
            Ok("0 to 3 are open".into())
        } else {
            Err(format!("also open: {unexpected:?}"))
        },
    )
}

pub(super) fn limits(profile: &SandboxProfile) -> Finding {
    let too_much = usize::try_from(profile.memory_bytes.saturating_mul(2)).unwrap_or(usize::MAX / 2);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which is never touched.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), too_much, protection, flags, -1, 0) };
    let zero = |resource: rlimit::Resource| resource.get().is_ok_and(|limits| limits == (0, 0));
    let unlimited = [
        (mapped != libc::MAP_FAILED, "memory above the limit was given"),
        (!zero(rlimit::Resource::FSIZE), "files may be written"),
        (!zero(rlimit::Resource::CORE), "cores may be written"),
        (!rlimit::Resource::NOFILE.get_soft().is_ok_and(|soft| soft <= 64), "descriptors are not limited"),
    ];
    let unlimited: Vec<&str> = unlimited.iter().filter(|(is, _)| *is).map(|(_, words)| *words).collect();
    Finding::from_result(
        Protection::ResourceLimits,
        if unlimited.is_empty() {
            Ok("memory above the limit refused".into())
        } else {
            Err(unlimited.join(", "))
        },
    )
}

pub(super) fn not_dumpable() -> Finding {
    let outcome = match nix::sys::prctl::get_dumpable() {
        Ok(false) => Ok("not dumpable".into()),
        other => Err(format!("dumpable: {other:?}")),
    };
    Finding::from_result(Protection::NotDumpable, outcome)
}

pub(super) fn no_new_privileges() -> Finding {
    let outcome = match nix::sys::prctl::get_no_new_privs() {
        Ok(true) => Ok("set".into()),
        other => Err(format!("no_new_privs: {other:?}")),
    };
    Finding::from_result(Protection::NoNewPrivileges, outcome)
}

/// Checks that writable memory cannot become executable. A kernel without this restriction is accepted, since the
/// seccomp filter enforces it too.
pub(super) fn write_xor_execute() -> Finding {
    let protection = Protection::WriteXorExecute;
    const PAGE: usize = 4096;
    let (read_write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new page, used by no other code, and unmapped below.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, read_write, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Finding::broken(protection, "no page to try with");
    }
    // SAFETY: the page from above.
    let gained = unsafe { libc::mprotect(page, PAGE, libc::PROT_READ | libc::PROT_EXEC) } == 0;
    // SAFETY: as above.
    unsafe { libc::munmap(page, PAGE) };
    match (gained, crate::process::write_execute_is_denied()) {
        (false, _) => Finding::holds(protection, "memory that was writable stays without execution"),
        (true, None) => Finding::absent(protection, "no memory-deny-write-execute (Linux 6.3)"),
        (true, Some(denied)) => {
            Finding::broken(protection, format!("memory became executable, flag {denied}"))
        }
    }
}

/// Checks that the kernel supports pidfds. Unlike a process id, a pidfd never refers to a later process with the same
/// id.
pub(super) fn pidfd(child: Pid) -> Finding {
    // SAFETY: no pointers.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, child.as_raw(), 0) };
    match closed(opened) {
        Attempt::Succeeded => Finding::holds(Protection::Pidfd, "a process can be named by a descriptor"),
        attempt => Finding::absent(Protection::Pidfd, format!("pidfd_open {attempt} (Linux 5.3)")),
    }
}

/// Checks that the filter refuses forbidden system calls with EPERM and permits an allowed one.
pub(super) fn system_calls() -> Finding {
    let attempts = bare_calls();
    let not_refused: Vec<String> = attempts
        .iter()
        .filter(|(_, attempt)| *attempt != Attempt::Refused(libc::EPERM))
        .map(|(name, attempt)| format!("{name}: {attempt}"))
        .collect();
    // SAFETY: no pointers.
    let control = unsafe { libc::syscall(libc::SYS_getpid) } > 0;
    let outcome = match (not_refused.is_empty(), control) {
        (true, true) => Ok(format!("{} attempts refused, a permitted call works", attempts.len())),
        (true, false) => Err("getpid was refused too".into()),
        (false, _) => Err(not_refused.join(", ")),
    };
    Finding::from_result(Protection::SystemCalls, outcome)
}

fn bare_calls() -> [(&'static str, Attempt); 10] {
    use libc::syscall;
    let here = libc::AT_FDCWD;
    let root = c"/".as_ptr();
    let nothing = std::ptr::null::<libc::c_void>();
    let mut space = [0_u64; 64];
    let space = space.as_mut_ptr();
    let (all, private) =
        (libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let created = libc::O_CREAT | libc::O_WRONLY;
    // SAFETY: every pointer is null, a live C string, or space for more than the call writes. A child that fork should not have
    // made ends at once.
    unsafe {
        [
            ("read a directory", Attempt::from_result(syscall(libc::SYS_openat, here, root, libc::O_RDONLY))),
            (
                "write a file",
                Attempt::from_result(syscall(libc::SYS_openat, here, c"/x".as_ptr(), created, 0o600)),
            ),
            ("look at a file", Attempt::from_result(syscall(libc::SYS_newfstatat, here, root, space, 0))),
            (
                "open an internet socket",
                Attempt::from_result(syscall(libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0)),
            ),
            (
                "open a unix socket",
                Attempt::from_result(syscall(libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0)),
            ),
            ("start a process", forked(syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0))),
            ("execute a program", Attempt::from_result(syscall(libc::SYS_execve, root, nothing, nothing))),
            ("signal the zygote", signal_zygote()),
            (
                "make memory executable",
                Attempt::from_result(syscall(libc::SYS_mmap, 0, 4096, all, private, -1, 0)),
            ),
            (
                "lift a limit",
                Attempt::from_result(syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, space, nothing)),
            ),
        ]
    }
}

fn forked(result: libc::c_long) -> Attempt {
    if result == 0 {
        // SAFETY: the child that should not be: it ends.
        unsafe { libc::_exit(0) }
    }
    Attempt::from_result(result)
}
