//! Seccomp filters for sandboxed upstream servers without network access, which can create no sockets except connected
//! pairs, and for those with access to the internet only, which can also create sockets of TCP and UDP.
//!
//! Landlock is not sufficient for this purpose: it restricts only TCP. A Unix socket of the host (D-Bus, Docker) may
//! permit a server more than the network does.

use std::io;

use super::bpf::{self, ALLOWED, HEAD, UNKNOWN, and, answer, argument, equals, refused, sock_filter, when};
use crate::definition::Network;

/// Mask that removes flags such as `SOCK_CLOEXEC` from a socket's type.
const TYPE: u32 = 0xf;

const REFUSED: u32 = refused(libc::EACCES);

/// Refuses sockets of every family: also netlink, vsock, and Unix sockets by path.
#[rustfmt::skip] // One instruction a line.
const NO_SOCKETS: [sock_filter; 2] = [
    when(equals(libc::SYS_socket as u32), 0, 1),
    answer(REFUSED),
];

/// Refuses all sockets except those of IPv4, IPv6 and, for the names and addresses of network interfaces, route
/// netlink.
#[rustfmt::skip] // One instruction a line.
const INTERNET_SOCKETS: [sock_filter; 9] = [
    when(equals(libc::SYS_socket as u32), 0, 8),
    argument(0),
    when(equals(libc::AF_INET as u32), 4, 0),
    when(equals(libc::AF_INET6 as u32), 3, 0),
    when(equals(libc::AF_NETLINK as u32), 0, 3),
    argument(2),
    when(equals(libc::NETLINK_ROUTE as u32), 0, 1),
    answer(ALLOWED),
    answer(REFUSED),
];

#[rustfmt::skip] // One instruction a line.
const OTHER_CALLS: [sock_filter; 13] = [
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

/// Permanently installs the seccomp filter that restricts the sockets of this process to those that `network` permits.
/// Requires `no_new_privs`.
pub(super) fn install(network: Network) -> io::Result<()> {
    match program(network) {
        Some(program) => bpf::install(&program),
        None => Ok(()),
    }
}

/// Returns the filter; `None` if all sockets are permitted.
fn program(network: Network) -> Option<Vec<sock_filter>> {
    let sockets = match network {
        Network::None => &NO_SOCKETS[..],
        Network::Internet => &INTERNET_SOCKETS[..],
        Network::All => return None,
    };
    Some([&HEAD[..], sockets, &OTHER_CALLS[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::super::bpf::tests::{check_other_numbers, own};
    use super::*;

    #[test]
    fn sockets_are_refused_by_every_way_and_all_else_is_not() {
        for network in [Network::None, Network::Internet] {
            check(network);
        }
        assert!(program(Network::All).is_none());
    }

    fn check(network: Network) {
        let program = program(network).expect("a filter");
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
        assert_eq!(super::super::bpf::tests::own(&program, libc::SYS_socket, &audit), REFUSED);
        check_other_numbers(&program);
    }
}
