//! Seccomp filters of sandboxed upstream servers, which are compiled from `supervisor/upstream/seccomp/` at build time.
//!
//! One filter protects processes outside the sandbox where Landlock does not: their limits, priorities, memory and
//! signals, and objects that the kernel shares among all processes of a user (SysV and POSIX queues, shared memory,
//! keyrings). A filter sees only numbers and cannot know which processes the server has started.
//!
//! The other filter restricts the sockets of servers without access to the network, or with access to the internet only.
//! Landlock is not sufficient for this purpose: it restricts only TCP. A Unix socket of the host (D-Bus, Docker) may permit
//! a server more than the network does.
//!
//! Filters compare only the low 32 bits of a system call argument. This suffices, since all arguments that the filters
//! inspect are of type `int`, of which the kernel uses the low half.

use libc::sock_filter;
use lockhouse_sandbox::{SandboxError, decode_filter, install_filter};
use nix::unistd::Pid;

use crate::definition::Network;

macro_rules! program {
    ($name:literal) => {
        include_bytes!(concat!(env!("LOCKHOUSE_SECCOMP_PROGRAMS"), "/", $name, ".bpf")).as_slice()
    };
}

/// Placeholder in the compiled filters for the process ID of the supervisor.
const SUPERVISOR: i32 = 0x7fff_ffff;

/// Permanently installs the filters on this process: one that restricts its sockets to those that `network` permits, and
/// one that protects other processes and, without `user_namespaces`, the kernel. Requires `no_new_privs`. Signals to the
/// process `supervisor` are also refused, because Landlock before ABI 6 does not restrict signals.
pub(super) fn install(network: Network, supervisor: Pid, user_namespaces: bool) -> Result<(), SandboxError> {
    if let Some(program) = socket_program(network) {
        install_filter(&program)?;
    }
    install_filter(&process_program(supervisor.as_raw(), user_namespaces))
}

/// Returns the filter of sockets; `None` if all sockets are permitted.
fn socket_program(network: Network) -> Option<Vec<sock_filter>> {
    match network {
        Network::None => Some(decode_filter(program!("no_sockets"))),
        Network::Internet => Some(decode_filter(program!("internet_sockets"))),
        Network::All => None,
    }
}

fn process_program(supervisor: i32, user_namespaces: bool) -> Vec<sock_filter> {
    let mut program = decode_filter(match user_namespaces {
        true => program!("processes"),
        false => program!("processes_without_user_namespaces"),
    });
    for step in &mut program {
        match step.k.cast_signed() {
            SUPERVISOR => step.k = supervisor.cast_unsigned(),
            // A process group.
            other if other == -SUPERVISOR => step.k = (-supervisor).cast_unsigned(),
            _ => {}
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    /// The result that makes a system call fail with ENOSYS, as on a kernel without this system call.
    const UNKNOWN: u32 = refused(libc::ENOSYS);

    /// Offsets in `struct seccomp_data`.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const ARGUMENTS: u32 = 16;

    /// The architecture of this build: `AUDIT_ARCH_X86_64` or `AUDIT_ARCH_AARCH64`, from linux/audit.h.
    #[cfg(target_arch = "x86_64")]
    const OWN_ARCHITECTURE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const OWN_ARCHITECTURE: u32 = 0xc000_00b7;

    /// The bit in a system call number that marks calls of the x32 ABI.
    const X32: u32 = 0x4000_0000;

    /// Requests of ioctl(2) from linux/sockios.h, and commands of fcntl(2).
    const FIOSETOWN: u32 = 0x8901;
    const SIOCSPGRP: u32 = 0x8902;
    const F_SETSIG: u32 = 10;
    const F_SETOWN_EX: u32 = 15;

    const NEVER: [libc::c_long; 9] = [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_process_madvise,
        libc::SYS_process_mrelease,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
    ];

    const ABSENT: [libc::c_long; 22] = [
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_shmctl,
        libc::SYS_shmdt,
        libc::SYS_msgget,
        libc::SYS_msgsnd,
        libc::SYS_msgrcv,
        libc::SYS_msgctl,
        libc::SYS_semget,
        libc::SYS_semop,
        libc::SYS_semtimedop,
        libc::SYS_semctl,
        libc::SYS_mq_open,
        libc::SYS_mq_unlink,
        libc::SYS_mq_timedsend,
        libc::SYS_mq_timedreceive,
        libc::SYS_mq_notify,
        libc::SYS_mq_getsetattr,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_keyctl,
        // A directory of /proc can be used as a descriptor of its process.
        libc::SYS_pidfd_send_signal,
    ];

    /// System calls that are allowed only with certain arguments.
    const ONLY: [libc::c_long; 9] = [
        libc::SYS_prlimit64,
        libc::SYS_setpriority,
        libc::SYS_ioprio_set,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setaffinity,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ];

    const fn refused(errno: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | errno as u32
    }

    /// Interprets a filter as the kernel would and returns its result for a system call.
    fn verdict(program: &[sock_filter], architecture: u32, number: u32, arguments: &[u32]) -> u32 {
        let word = |offset| match offset {
            ARCHITECTURE => architecture,
            NUMBER => number,
            ARGUMENTS.. => arguments[((offset - ARGUMENTS) / 8) as usize],
            other => panic!("reads at {other}"),
        };
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let mut jump = |so| at += usize::from(if so { jt } else { jf });
            match code {
                0x20 => accumulator = word(k),
                0x05 => at += k as usize,
                0x54 => accumulator &= k,
                0x15 => jump(accumulator == k),
                0x35 => jump(accumulator >= k),
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
            at += 1;
        }
    }

    /// Returns the filter's result for a system call of the native architecture.
    fn own(program: &[sock_filter], number: libc::c_long, arguments: &[u32]) -> u32 {
        verdict(program, OWN_ARCHITECTURE, number as u32, arguments)
    }

    /// Checks that the filter permits no system calls with the numbers of another architecture or of the x32 ABI.
    fn check_other_numbers(program: &[sock_filter]) {
        const I386: u32 = 0x4000_0003;
        for number in 0..600 {
            let x32 = verdict(program, OWN_ARCHITECTURE, number | X32, &[1, 1, 1]);
            assert_eq!(x32, UNKNOWN, "x32 call {number}");
            let i386 = verdict(program, I386, number, &[1, 1, 1]);
            assert_eq!(i386, libc::SECCOMP_RET_KILL_PROCESS, "i386 call {number}");
        }
    }

    #[test]
    fn what_reaches_other_processes_is_refused_and_all_else_is_not() {
        const SUPERVISOR: i32 = 4711;
        const REFUSED: u32 = refused(libc::EPERM);
        let program = process_program(SUPERVISOR, true);
        let own = |number, arguments: [u32; 3]| own(&program, number, &arguments);
        NEVER.iter().for_each(|call| assert_eq!(own(*call, [0, 0, 0]), REFUSED, "{call}"));
        ABSENT.iter().for_each(|call| assert_eq!(own(*call, [0, 0, 0]), UNKNOWN, "{call}"));
        for (call, [itself, other]) in [
            (libc::SYS_prlimit64, [[0, 0, 0], [4711, 0, 0]]),
            (libc::SYS_setpriority, [[0, 0, 5], [0, 4711, 5]]),
            (libc::SYS_setpriority, [[0, 0, 5], [1, 0, 5]]),
            (libc::SYS_setpriority, [[0, 0, 5], [2, 0, 5]]),
            (libc::SYS_ioprio_set, [[1, 0, 0], [1, 4711, 0]]),
            (libc::SYS_ioprio_set, [[1, 0, 0], [2, 0, 0]]),
            (libc::SYS_ioprio_set, [[1, 0, 0], [3, 0, 0]]),
            (libc::SYS_sched_setscheduler, [[0, 0, 0], [4711, 0, 0]]),
            (libc::SYS_sched_setparam, [[0, 0, 0], [4711, 0, 0]]),
            (libc::SYS_sched_setattr, [[0, 0, 0], [4711, 0, 0]]),
            (libc::SYS_sched_setaffinity, [[0, 8, 0], [4711, 8, 0]]),
            (libc::SYS_migrate_pages, [[0, 0, 0], [4711, 0, 0]]),
            (libc::SYS_move_pages, [[0, 0, 0], [4711, 0, 0]]),
            (libc::SYS_fcntl, [[0, libc::F_SETFL as u32, 0], [0, libc::F_SETOWN as u32, 4711]]),
            (libc::SYS_fcntl, [[0, libc::F_GETFL as u32, 0], [0, F_SETSIG, 9]]),
            (libc::SYS_fcntl, [[0, libc::F_DUPFD_CLOEXEC as u32, 0], [0, F_SETOWN_EX, 0]]),
            (libc::SYS_ioctl, [[0, libc::FIONREAD as u32, 0], [0, FIOSETOWN, 0]]),
            (libc::SYS_ioctl, [[0, libc::TIOCGWINSZ as u32, 0], [0, SIOCSPGRP, 0]]),
            (libc::SYS_kill, [[4712, 9, 0], [4711, 9, 0]]),
            (libc::SYS_kill, [[0, 9, 0], [-4711_i32 as u32, 9, 0]]),
            (libc::SYS_kill, [[-4712_i32 as u32, 9, 0], [-1_i32 as u32, 9, 0]]),
            (libc::SYS_tkill, [[4712, 9, 0], [4711, 9, 0]]),
            (libc::SYS_tgkill, [[4712, 4712, 9], [4711, 4712, 9]]),
            (libc::SYS_rt_sigqueueinfo, [[4712, 9, 0], [4711, 9, 0]]),
            (libc::SYS_rt_tgsigqueueinfo, [[4712, 4712, 9], [4711, 4712, 9]]),
        ] {
            assert_eq!(own(call, itself), ALLOWED, "{call} {itself:?}");
            assert_eq!(own(call, other), REFUSED, "{call} {other:?}");
        }
        let named: Vec<_> = ONLY.into_iter().chain(NEVER).chain(ABSENT).collect();
        for number in 0..600 {
            assert!(named.contains(&number) || own(number, [7, 7, 7]) == ALLOWED, "call {number}");
        }
        check_other_numbers(&program);
    }

    #[test]
    fn user_namespaces_are_refused_by_every_way_and_other_namespaces_and_threads_are_not() {
        const REFUSED: u32 = refused(libc::EPERM);
        let (refusing, permitting) = (process_program(4711, false), process_program(4711, true));
        let user = libc::CLONE_NEWUSER as u32;
        let thread = (libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_THREAD) as u32;
        for (call, flags, expected) in [
            (libc::SYS_unshare, user, REFUSED),
            (libc::SYS_unshare, user | libc::CLONE_NEWNET as u32, REFUSED),
            (libc::SYS_unshare, libc::CLONE_NEWNS as u32, ALLOWED),
            (libc::SYS_unshare, libc::CLONE_FILES as u32, ALLOWED),
            (libc::SYS_clone, user | libc::SIGCHLD as u32, REFUSED),
            (libc::SYS_clone, libc::SIGCHLD as u32, ALLOWED),
            (libc::SYS_clone, thread, ALLOWED),
            (libc::SYS_clone3, 0, UNKNOWN),
            (libc::SYS_setns, 3, REFUSED),
        ] {
            assert_eq!(own(&refusing, call, &[flags, user, 0]), expected, "{call} {flags:#x}");
            assert_eq!(own(&permitting, call, &[flags, user, 0]), ALLOWED, "{call} {flags:#x}");
        }
        let named = [libc::SYS_unshare, libc::SYS_clone, libc::SYS_clone3, libc::SYS_setns];
        for number in (0..600).filter(|number| !named.contains(number)) {
            let arguments = [u32::MAX, user, 0];
            let expected = own(&permitting, number, &arguments);
            assert_eq!(own(&refusing, number, &arguments), expected, "call {number}");
        }
        check_other_numbers(&refusing);
    }

    #[test]
    fn sockets_are_refused_by_every_way_and_all_else_is_not() {
        for network in [Network::None, Network::Internet] {
            check(network);
        }
        assert!(socket_program(Network::All).is_none());
    }

    fn check(network: Network) {
        const REFUSED: u32 = refused(libc::EACCES);
        let program = socket_program(network).expect("a filter");
        let own = |number, arguments: [u32; 2]| {
            own(&program, number, &[arguments[0], arguments[1], libc::NETLINK_ROUTE as u32])
        };
        let (unix, pair) = (libc::AF_UNIX as u32, libc::SYS_socketpair);
        let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| family as u32);
        for family in 0..64 {
            let permitted = network == Network::Internet && internet.contains(&family);
            let expected = if permitted { ALLOWED } else { REFUSED };
            let socket = own(libc::SYS_socket, [family, libc::SOCK_STREAM as u32]);
            assert_eq!(socket, expected, "family {family} with {network:?}");
            let expected = if family == unix { ALLOWED } else { REFUSED };
            assert_eq!(own(pair, [family, libc::SOCK_STREAM as u32]), expected, "pair of family {family}");
        }
        let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32;
        for kind in 0..16 {
            let connected = [libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32].contains(&kind);
            let expected = if connected { ALLOWED } else { REFUSED };
            assert_eq!(own(pair, [unix, kind | flags]), expected, "pair of kind {kind}");
        }
        assert_eq!(own(libc::SYS_io_uring_setup, [0, 0]), UNKNOWN);
        for number in 0..600 {
            let held = [libc::SYS_socket, pair, libc::SYS_io_uring_setup].contains(&number);
            assert!(held || own(number, [2, 1]) == ALLOWED, "call {number}");
        }
        let audit = [libc::AF_NETLINK as u32, libc::SOCK_RAW as u32, libc::NETLINK_AUDIT as u32];
        assert_eq!(super::tests::own(&program, libc::SYS_socket, &audit), REFUSED);
        check_other_numbers(&program);
    }
}
