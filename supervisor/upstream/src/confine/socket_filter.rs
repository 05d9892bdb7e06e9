//! A seccomp filter for sandboxed upstream servers without network access: they can create no sockets except connected
//! pairs.
//!
//! Landlock is not sufficient for this purpose: it restricts only TCP. A Unix socket of the host (D-Bus, Docker) may
//! permit a server more than the network does.

use std::io;

use super::bpf::{self, ALLOWED, HEAD, UNKNOWN, and, answer, argument, equals, refused, sock_filter, when};

/// Mask that removes flags such as `SOCK_CLOEXEC` from a socket's type.
const TYPE: u32 = 0xf;

const REFUSED: u32 = refused(libc::EACCES);

#[rustfmt::skip] // One instruction a line.
const RULES: [sock_filter; 15] = [
    when(equals(libc::SYS_socket as u32), 0, 1),
    answer(REFUSED),                                 // Every family: also netlink, vsock, and unix sockets by path.
    when(equals(libc::SYS_io_uring_setup as u32), 0, 1),
    answer(UNKNOWN),                                 // It makes and connects sockets without a system call each.
    when(equals(libc::SYS_socketpair as u32), 1, 0),
    answer(ALLOWED),                                 // Whatever is no socket.
    argument(0),
    when(equals(libc::AF_UNIX as u32), 1, 0),
    answer(REFUSED),                                 // TIPC makes pairs too, and reaches other machines.
    argument(1),
    and(TYPE),
    when(equals(libc::SOCK_STREAM as u32), 1, 0),
    when(equals(libc::SOCK_SEQPACKET as u32), 0, 1), // A pair of datagram sockets can send to any other by its path.
    answer(ALLOWED),
    answer(REFUSED),
];

/// Permanently installs the seccomp filter that lets this process create no sockets except connected pairs.
/// Requires `no_new_privs`.
pub(super) fn install() -> io::Result<()> {
    bpf::install(&program())
}

fn program() -> Vec<sock_filter> {
    [&HEAD[..], &RULES[..]].concat()
}

#[cfg(test)]
mod tests {
    use super::super::bpf::tests::{check_other_numbers, own};
    use super::*;

    #[test]
    fn sockets_are_refused_by_every_way_and_all_else_is_not() {
        let program = program();
        let own = |number, arguments: [u32; 2]| own(&program, number, &arguments);
        let (unix, pair) = (libc::AF_UNIX as u32, libc::SYS_socketpair);
        for family in 0..64 {
            assert_eq!(own(libc::SYS_socket, [family, libc::SOCK_STREAM as u32]), REFUSED, "family {family}");
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
        check_other_numbers(&program);
    }
}
