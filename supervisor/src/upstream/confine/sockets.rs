//! No network: a filter under which a process makes no socket but pairs of its own.
//!
//! Landlock knows of TCP alone, and a unix socket of the host (D-Bus, Docker) can do more than any network. The filter
//! compares what the kernel itself reads: each of these arguments is an `int`, of which it takes the low half.

#![allow(unsafe_code)] // seccomp(2) has no wrapper in nix.

use std::io;

use libc::sock_filter;

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;
const SECOND_ARGUMENT: u32 = 24;

/// `AUDIT_ARCH_X86_64` and `AUDIT_ARCH_AARCH64`, from linux/audit.h.
#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;

/// The bit of x32 calls, which no number of another architecture has.
const X32: u32 = 0x4000_0000;
/// Of a socket's type, what is no flag.
const TYPE: u32 = 0xf;

const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EACCES as u32;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

#[rustfmt::skip] // One instruction a line.
const FILTER: [sock_filter; 21] = [
    load(ARCHITECTURE),
    when(equals(OWN_ARCHITECTURE), 1, 0),
    answer(libc::SECCOMP_RET_KILL_PROCESS),          // i386 has other numbers, and all of sockets in one of them.
    load(NUMBER),
    when(at_least(X32), 0, 1),
    answer(UNKNOWN),                                 // x32 has the same calls under other numbers.
    when(equals(libc::SYS_socket as u32), 0, 1),
    answer(REFUSED),                                 // Every family: also netlink, vsock, and unix sockets by path.
    when(equals(libc::SYS_io_uring_setup as u32), 0, 1),
    answer(UNKNOWN),                                 // It makes and connects sockets without a system call each.
    when(equals(libc::SYS_socketpair as u32), 1, 0),
    answer(libc::SECCOMP_RET_ALLOW),                 // Whatever is no socket.
    load(FIRST_ARGUMENT),
    when(equals(libc::AF_UNIX as u32), 1, 0),
    answer(REFUSED),                                 // TIPC makes pairs too, and reaches other machines.
    load(SECOND_ARGUMENT),
    and(TYPE),
    when(equals(libc::SOCK_STREAM as u32), 1, 0),
    when(equals(libc::SOCK_SEQPACKET as u32), 0, 1), // A pair of datagram sockets can send to any other by its path.
    answer(libc::SECCOMP_RET_ALLOW),
    answer(REFUSED),
];

const fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

const fn and(mask: u32) -> sock_filter {
    instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask)
}

const fn answer(verdict: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, verdict)
}

/// Skips so many instructions if it is so, and so many if it is not.
const fn when((comparison, value): (u32, u32), so: u8, not: u8) -> sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, so, not, value)
}

const fn equals(value: u32) -> (u32, u32) {
    (libc::BPF_JEQ, value)
}

const fn at_least(value: u32) -> (u32, u32) {
    (libc::BPF_JGE, value)
}

const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// Installs the filter on this process, for good. It must have `no_new_privs`.
pub(super) fn refuse() -> io::Result<()> {
    let header = libc::sock_fprog { len: FILTER.len() as u16, filter: FILTER.as_ptr().cast_mut() };
    // SAFETY: the header points at a live program of its stated length.
    match unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const header) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer to a call, by an interpreter of the few instructions that there are.
    fn verdict(architecture: u32, number: u32, arguments: [u32; 2]) -> u32 {
        let word = |offset| match offset {
            ARCHITECTURE => architecture,
            NUMBER => number,
            FIRST_ARGUMENT => arguments[0],
            SECOND_ARGUMENT => arguments[1],
            other => panic!("reads at {other}"),
        };
        let (mut at, mut accumulator) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = FILTER[at];
            let mut jump = |so| at += usize::from(if so { jt } else { jf });
            match code {
                0x20 => accumulator = word(k),
                0x54 => accumulator &= k,
                0x15 => jump(accumulator == k),
                0x35 => jump(accumulator >= k),
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            }
            at += 1;
        }
    }

    #[test]
    fn sockets_are_refused_by_every_way_and_all_else_is_not() {
        const I386: u32 = 0x4000_0003;
        let own = |number: libc::c_long, arguments| verdict(OWN_ARCHITECTURE, number as u32, arguments);
        let (unix, pair) = (libc::AF_UNIX as u32, libc::SYS_socketpair);
        for family in 0..64 {
            assert_eq!(own(libc::SYS_socket, [family, libc::SOCK_STREAM as u32]), REFUSED, "family {family}");
            let expected = if family == unix { libc::SECCOMP_RET_ALLOW } else { REFUSED };
            assert_eq!(own(pair, [family, libc::SOCK_STREAM as u32]), expected, "pair of family {family}");
        }
        let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32;
        for kind in 0..16 {
            let connected = [libc::SOCK_STREAM as u32, libc::SOCK_SEQPACKET as u32].contains(&kind);
            let expected = if connected { libc::SECCOMP_RET_ALLOW } else { REFUSED };
            assert_eq!(own(pair, [unix, kind | flags]), expected, "pair of kind {kind}");
        }
        assert_eq!(own(libc::SYS_io_uring_setup, [0, 0]), UNKNOWN);
        for number in 0..600 {
            let held = [libc::SYS_socket, pair, libc::SYS_io_uring_setup].contains(&number);
            assert!(held || own(number, [2, 1]) == libc::SECCOMP_RET_ALLOW, "call {number}");
            assert_eq!(verdict(OWN_ARCHITECTURE, number as u32 | X32, [1, 1]), UNKNOWN, "x32 call {number}");
            assert_eq!(verdict(I386, number as u32, [1, 1]), libc::SECCOMP_RET_KILL_PROCESS, "i386 {number}");
        }
    }
}
