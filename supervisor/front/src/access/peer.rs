//! The peer of a connection: its address over TCP, or its user id over a Unix domain socket, as the kernel reports it
//! (SO_PEERCRED).

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, SocketAddr};

use lockhouse_messages::ConnectionId;

/// The peer of a connection, or the client that a trusted proxy names for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    /// The client's IP address, as a trusted proxy stated it in a header of the request.
    Forwarded(IpAddr),
    /// A process on this host that connected through a Unix domain socket. The kernel recorded its ids at that time
    /// (SO_PEERCRED).
    Unix {
        uid: u32,
        gid: u32,
        /// The process id. `None` if the kernel does not report one.
        pid: Option<i32>,
        /// The number by which the engine knows the connection. It has asked the kernel for the user itself, so that the ids
        /// above are for the front's limits and log alone.
        connection: Option<ConnectionId>,
    },
}

impl Peer {
    /// Returns the address or the user, which all connections of the peer have in common.
    pub(crate) fn origin(&self) -> (Option<IpAddr>, Option<u32>) {
        match self {
            Self::Tcp(address) => (Some(address.ip()), None),
            Self::Forwarded(address) => (Some(*address), None),
            Self::Unix { uid, .. } => (None, Some(*uid)),
        }
    }
}

impl Display for Peer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Forwarded(address) => write!(f, "{address}, through a trusted proxy,"),
            Self::Unix { uid, gid, pid: Some(pid), .. } => {
                write!(f, "user {uid} (group {gid}, process {pid})")
            }
            Self::Unix { uid, gid, pid: None, .. } => write!(f, "user {uid} (group {gid})"),
        }
    }
}
