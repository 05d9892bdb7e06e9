//! A seccomp filter for sandboxed upstream servers. It protects processes outside the sandbox where Landlock does not:
//! their limits, priorities, memory and signals, and objects that the kernel shares among all processes of a user (SysV
//! and POSIX queues, shared memory, keyrings).
//!
//! A filter sees only numbers and cannot know which processes the server has started. A system call that changes the
//! limits, priority, scheduling or memory of the process with a given PID is therefore allowed only with the PID 0,
//! which means the calling process itself.

use std::io;

use super::bpf::{self, ALLOWED, HEAD, UNKNOWN, and, answer, argument, equals, refused, sock_filter, when};

const REFUSED: u32 = refused(libc::EPERM);

/// The value of the first argument of setpriority(2) that selects one process.
const PRIO_PROCESS: u32 = 0;
/// The value of the first argument of ioprio_set(2) that selects one process.
const IOPRIO_WHO_PROCESS: u32 = 1;
/// The ioctl(2) request, from linux/sockios.h, that selects the process to which the kernel sends a signal when a
/// socket becomes readable.
const FIOSETOWN: u32 = 0x8901;
/// Another ioctl(2) request with the same effect as `FIOSETOWN`.
const SIOCSPGRP: u32 = 0x8902;
const F_SETSIG: u32 = 10;
const F_SETOWN_EX: u32 = 15;

/// System calls that are refused with EPERM, since no server needs them: access to the memory and descriptors of other
/// processes, BPF and perf.
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

/// System calls that are refused with ENOSYS. A kernel can be built without them, so programs handle this error.
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

/// System calls that change the process with a given PID. Each is allowed only if its arguments have the values in the
/// list, of which each entry is the index and the value of an argument.
const ONLY: [(libc::c_long, &[(u32, u32)]); 9] = [
    (libc::SYS_prlimit64, &[(0, 0)]),
    (libc::SYS_setpriority, &[(0, PRIO_PROCESS), (1, 0)]),
    (libc::SYS_ioprio_set, &[(0, IOPRIO_WHO_PROCESS), (1, 0)]),
    (libc::SYS_sched_setscheduler, &[(0, 0)]),
    (libc::SYS_sched_setparam, &[(0, 0)]),
    (libc::SYS_sched_setattr, &[(0, 0)]),
    (libc::SYS_sched_setaffinity, &[(0, 0)]),
    (libc::SYS_migrate_pages, &[(0, 0)]),
    (libc::SYS_move_pages, &[(0, 0)]),
];

/// System calls that are refused if one argument has a certain value. Each entry contains the system call, the index of
/// the argument, and the value. With these values, a process selects which process gets a signal when a descriptor
/// becomes readable, or which signal.
const NOT_WITH: [(libc::c_long, u32, u32); 5] = [
    (libc::SYS_fcntl, 1, libc::F_SETOWN as u32),
    (libc::SYS_fcntl, 1, F_SETSIG),
    (libc::SYS_fcntl, 1, F_SETOWN_EX),
    (libc::SYS_ioctl, 1, FIOSETOWN),
    (libc::SYS_ioctl, 1, SIOCSPGRP),
];

/// Refuses new user namespaces, in which a process has all capabilities, and joining any namespace. `clone3` has its flags
/// behind a pointer that no filter can read; libc falls back to clone.
#[rustfmt::skip] // One instruction a line.
const NO_USER_NAMESPACES: [sock_filter; 11] = [
    when(equals(libc::SYS_clone3 as u32), 0, 1),
    answer(UNKNOWN),
    when(equals(libc::SYS_setns as u32), 0, 1),
    answer(REFUSED),
    when(equals(libc::SYS_unshare as u32), 1, 0),
    when(equals(libc::SYS_clone as u32), 0, 5),
    argument(0),
    and(libc::CLONE_NEWUSER as u32),
    when(equals(0), 1, 0),
    answer(REFUSED),
    HEAD[3],
];

/// Permanently installs the seccomp filter that protects other processes, and without `user_namespaces` the kernel, from
/// this process. Requires `no_new_privs`. The filter also refuses signals to the process `supervisor`, because Landlock
/// before ABI 6 does not restrict signals.
pub(super) fn install(supervisor: nix::unistd::Pid, user_namespaces: bool) -> io::Result<()> {
    bpf::install(&program(supervisor.as_raw(), user_namespaces))
}

fn program(supervisor: i32, user_namespaces: bool) -> Vec<sock_filter> {
    let mut program = HEAD.to_vec();
    if !user_namespaces {
        program.extend(NO_USER_NAMESPACES);
    }
    for (calls, verdict) in [(&NEVER[..], REFUSED), (&ABSENT[..], UNKNOWN)] {
        for call in calls {
            program.extend([when(equals(*call as u32), 0, 1), answer(verdict)]);
        }
    }
    for (call, wanted) in ONLY {
        // Jump past the comparisons, two instructions each, and the two verdicts.
        program.push(when(equals(call as u32), 0, 2 * wanted.len() as u8 + 2));
        for (place, (index, value)) in wanted.iter().enumerate() {
            let to_refusal = 2 * (wanted.len() - 1 - place) as u8 + 1;
            program.extend([argument(*index), when(equals(*value), 0, to_refusal)]);
        }
        program.extend([answer(ALLOWED), answer(REFUSED)]);
    }
    for (call, index, value) in NOT_WITH.into_iter().chain(signals(supervisor)) {
        program.push(when(equals(call as u32), 0, 4));
        program.extend([argument(index), when(equals(value), 0, 1), answer(REFUSED), reload()]);
    }
    program.push(answer(ALLOWED));
    program
}

/// Returns the instruction that loads the system call number again, after an argument was loaded in its place.
fn reload() -> sock_filter {
    HEAD[3]
}

/// Lists the system calls that can send a signal to the supervisor, its process group, or all processes of the user.
/// Each entry contains the system call, and the index and the value of its PID argument. A negative PID means a process
/// group, and -1 all processes.
fn signals(supervisor: i32) -> impl Iterator<Item = (libc::c_long, u32, u32)> {
    let ways = [
        (libc::SYS_kill, supervisor),
        (libc::SYS_kill, -supervisor),
        (libc::SYS_kill, -1),
        (libc::SYS_tkill, supervisor),
        (libc::SYS_tgkill, supervisor),
        (libc::SYS_rt_sigqueueinfo, supervisor),
        (libc::SYS_rt_tgsigqueueinfo, supervisor),
    ];
    ways.into_iter().map(|(call, target)| (call, 0, target as u32))
}

#[cfg(test)]
mod tests {
    use super::super::bpf::tests::{check_other_numbers, own};
    use super::*;

    #[test]
    fn what_reaches_other_processes_is_refused_and_all_else_is_not() {
        const SUPERVISOR: i32 = 4711;
        let program = program(SUPERVISOR, true);
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
        let named = ONLY.iter().map(|rule| rule.0).chain(NEVER).chain(ABSENT);
        let named: Vec<_> = named.collect();
        for number in 0..600 {
            assert!(named.contains(&number) || own(number, [7, 7, 7]) == ALLOWED, "call {number}");
        }
        check_other_numbers(&program);
    }

    #[test]
    fn user_namespaces_are_refused_by_every_way_and_other_namespaces_and_threads_are_not() {
        let (refusing, permitting) = (program(4711, false), program(4711, true));
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
}
