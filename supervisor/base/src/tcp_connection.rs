//! The account and the processes at the other end of a TCP connection of this host.

mod socket_holders;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::unistd::Uid;
use tokio::net::TcpStream;

/// The kernel's lists of TCP sockets (proc_pid_net(5)). A socket for IPv6 that is connected to an address of IPv4 is in
/// the second one.
const SOCKET_LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// How often the lists are read. A socket can be missing if others are opened or closed while a list is read.
const READS_MAX: usize = 3;
/// The state of an established connection in the lists.
const ESTABLISHED: &str = "01";
/// The user id that the kernel shows for accounts that the user namespace of this process does not know.
const OVERFLOW_UID: u32 = 65_534;

/// The two ends of an accepted TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConnection {
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// A row of the kernel's lists: one socket.
#[derive(Debug, PartialEq, Eq)]
struct ListedSocket {
    ends: TcpConnection,
    is_established: bool,
    socket: Socket,
}

#[derive(Debug, PartialEq, Eq)]
struct Socket {
    uid: u32,
    inode: u64,
}

impl TcpConnection {
    /// # Errors
    /// If the connection is closed.
    pub fn of(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self { local: stream.local_addr()?, peer: stream.peer_addr()? })
    }

    /// Whether this process's account, or root, has opened the socket at the other end of this connection, and no
    /// process of a sandboxed upstream server has it. `false` if this cannot be seen, for example if the other end is on
    /// another host or has begun to close.
    pub fn is_from_own_account(&self) -> bool {
        let socket = (0..READS_MAX).find_map(|_| SOCKET_LISTS.iter().find_map(|list| self.peer_socket(list)));
        socket.is_some_and(|Socket { uid, inode }| {
            let is_own = uid != OVERFLOW_UID && (uid == 0 || Uid::from_raw(uid) == Uid::effective());
            is_own && socket_holders::are_outside_of_sandbox(inode)
        })
    }

    fn peer_socket(&self, list: &str) -> Option<Socket> {
        self.peer_socket_in(BufReader::new(File::open(list).ok()?))
    }

    /// Returns the socket at the other end. The kernel shows user id 0 for sockets without a process: a
    /// socket that was closed (it is no longer established), and one that was not accepted yet (it has no inode).
    fn peer_socket_in(&self, mut list: impl BufRead) -> Option<Socket> {
        let other_end = Self { local: self.peer, peer: self.local }.canonical();
        let mut line = String::new();
        while list.read_line(&mut line).ok()? > 0 {
            if let Some(socket) = ListedSocket::parse(&line).filter(|socket| socket.ends == other_end) {
                return (socket.is_established && socket.socket.inode != 0).then_some(socket.socket);
            }
            line.clear();
        }
        None
    }

    /// Returns the ends with addresses of IPv4 instead of those of IPv6 that stand for them.
    fn canonical(self) -> Self {
        let canonical = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
        Self { local: canonical(self.local), peer: canonical(self.peer) }
    }
}

impl ListedSocket {
    /// Parses a row. `None` for the heading.
    fn parse(row: &str) -> Option<Self> {
        let mut fields = row.split_ascii_whitespace().skip(1);
        let local = parse_end(fields.next()?)?;
        let peer = parse_end(fields.next()?)?;
        let is_established = fields.next()? == ESTABLISHED;
        let mut rest = fields.skip(3);
        let uid = rest.next()?.parse().ok()?;
        let inode = rest.nth(1)?.parse().ok()?;
        Some(Self {
            ends: TcpConnection { local, peer }.canonical(),
            is_established,
            socket: Socket { uid, inode },
        })
    }
}

/// Parses an address and a port, each hexadecimal. The address consists of words of 32 bits, each as a number in the
/// byte order of this processor.
fn parse_end(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |word: &[u8]| Some(u32::from_str_radix(str::from_utf8(word).ok()?, 16).ok()?.to_ne_bytes());
    let bytes = address.as_bytes().chunks(8).map(word).collect::<Option<Vec<_>>>()?.concat();
    let address = match *bytes.as_slice() {
        [a, b, c, d] => IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        _ => IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)),
    };
    Some(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn row(ends: &str, state: &str, uid: u32, inode: u32) -> String {
        format!(
            "   3: {ends} {state} 00000000:00000000 00:00000000 00000000  {uid}        0 {inode} 1 0 20 4 30 10 -1\n"
        )
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn only_an_open_socket_of_the_other_end_has_an_account() {
        let connection =
            TcpConnection { local: ([127, 0, 0, 1], 8080).into(), peer: ([127, 0, 0, 1], 40_000).into() };
        let (other_end, own_end) = ("0100007F:9C40 0100007F:1F90", "0100007F:1F90 0100007F:9C40");
        let mapped = "0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:1F90";
        let another = row("0100007F:9C41 0100007F:1F90", "01", 5, 9);
        for (name, rows, expected) in [
            ("established", row(other_end, "01", 1000, 9), Some(1000)),
            ("a socket for IPv6", row(mapped, "01", 1000, 9), Some(1000)),
            ("of root", row(other_end, "01", 0, 9), Some(0)),
            ("closed, which the kernel shows as of root", row(other_end, "06", 0, 0), None),
            ("half closed", row(other_end, "05", 1000, 9), None),
            ("without a process", row(other_end, "01", 0, 0), None),
            ("the own end alone", row(own_end, "01", 1000, 9), None),
            ("no row", String::new(), None),
            ("a row that was cut off", format!("   3: {other_end} 01"), None),
        ] {
            let list = format!("{HEADING}{another}{rows}{another}");
            let socket = connection.peer_socket_in(list.as_bytes());
            assert_eq!(socket, expected.map(|uid| Socket { uid, inode: 9 }), "{name}");
        }
    }

    #[tokio::test]
    async fn the_kernel_names_the_account_of_a_connection() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = tokio::net::TcpListener::bind(address).await else { continue };
            let to = listener.local_addr().expect("an address");
            let (client, accepted) = tokio::join!(TcpStream::connect(to), listener.accept());
            let (client, (accepted, _)) = (client.expect("a connection"), accepted.expect("a connection"));
            let connection = TcpConnection::of(&accepted).expect("open");
            assert!(connection.is_from_own_account(), "{connection:?}");
            drop(client);
            assert!(!connection.is_from_own_account(), "closed: {connection:?}");
        }
    }
}
