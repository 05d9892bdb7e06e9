//! The user at the other end of a Unix domain socket connection, as the kernel reports it (SO_PEERCRED).

use std::io::{ErrorKind, Result};
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt};

/// The user at the other end of a connection that was accepted at a Unix domain socket. There is no way to make one but to
/// ask the kernel about a socket, so no text and no message can state a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnixPeer {
    uid: u32,
}

impl UnixPeer {
    /// Asks the kernel which user is at the other end. The kernel noted the user when the other end connected, and keeps
    /// the answer as long as the socket exists.
    ///
    /// The caller must have accepted the connection. At the connecting end of another socket, the kernel would report who
    /// listens there.
    ///
    /// # Errors
    /// It is no Unix domain socket, or not connected.
    pub fn of(socket: &impl AsFd) -> Result<Self> {
        let uid = getsockopt(socket, sockopt::PeerCredentials)?.uid();
        // What the kernel reports of a socket without another end.
        if uid == u32::MAX { Err(ErrorKind::NotConnected.into()) } else { Ok(Self { uid }) }
    }

    pub fn uid(self) -> u32 {
        self.uid
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    #[test]
    fn only_a_connected_unix_socket_has_a_peer() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let peer = UnixPeer::of(&one).expect("control: a connected socket");
        assert_eq!(peer.uid(), nix::unistd::geteuid().as_raw());
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let tcp = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        assert!(UnixPeer::of(&tcp).is_err(), "TCP");
        assert!(UnixPeer::of(&UnixDatagram::unbound().expect("a socket")).is_err(), "not connected");
        assert!(UnixPeer::of(&std::io::pipe().expect("a pipe").0).is_err(), "a pipe");
    }
}
