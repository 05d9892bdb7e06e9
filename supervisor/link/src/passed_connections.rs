//! Passes connections to a Unix domain socket from the engine's process, which accepts them, to the front's process, which
//! serves them. The engine accepts them because only whoever accepts a connection knows that it is one of this socket: of
//! any other connected socket, the kernel reports the user just as readily.
//!
//! A packet has the number of a connection in eight bytes (big endian), and its descriptor. In the other direction nothing
//! is sent: the front's end is shut down when it takes no further connection.

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use lockhouse_messages::ConnectionId;
use nix::sys::socket::{MsgFlags, Shutdown, recv, shutdown};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::passed_packets::{self, ReceivedPacket, watch};

/// Length of a packet in bytes.
const PACKET_BYTES: usize = 8;

/// The engine's end.
#[derive(Debug)]
pub struct ConnectionPasser(AsyncFd<OwnedFd>);

/// The front's end.
#[derive(Debug)]
pub struct PassedConnections(AsyncFd<OwnedFd>);

/// A connection that the engine has passed to the front.
#[derive(Debug)]
pub struct PassedConnection {
    pub id: ConnectionId,
    /// `None` if this process could not take the descriptor, because it has too many. The connection is then closed.
    pub socket: Option<OwnedFd>,
}

impl ConnectionPasser {
    /// Creates a pair of sockets. Returns the engine's end, and the descriptor from which the front's process makes a
    /// [`PassedConnections`].
    ///
    /// # Errors
    /// This process has too many descriptors.
    pub fn pair() -> Result<(Self, OwnedFd)> {
        let (own, other) = passed_packets::pair()?;
        Ok((Self(watch(own, Interest::READABLE | Interest::WRITABLE)?), other))
    }

    /// Passes a connection to the front. Waits while the front does not take earlier ones.
    ///
    /// # Errors
    /// Errors of sendmsg(2). After `BrokenPipe` and `ConnectionReset`, the front takes no connection any more.
    pub async fn pass(&self, id: ConnectionId, socket: BorrowedFd<'_>) -> Result<()> {
        let packet = id.0.to_be_bytes();
        self.0.async_io(Interest::WRITABLE, |own| passed_packets::send(own.as_fd(), &packet, &[socket])).await
    }

    /// Waits until the front takes no further connection.
    ///
    /// # Errors
    /// The front violates the protocol by sending something.
    pub async fn closed(&self) -> Result<()> {
        let peek = |own: &OwnedFd| {
            let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
            recv(own.as_raw_fd(), &mut [0], flags).map_err(Error::from)
        };
        match self.0.async_io(Interest::READABLE, peek).await {
            // An error of the socket is its end, too.
            Ok(0) | Err(_) => Ok(()),
            Ok(_) => {
                Err(Error::new(ErrorKind::InvalidData, "the front sent where it only receives connections"))
            }
        }
    }
}

impl PassedConnections {
    /// Takes over the front's end of a pair.
    ///
    /// # Errors
    /// The runtime cannot watch the descriptor.
    pub fn new(socket: OwnedFd) -> Result<Self> {
        Ok(Self(watch(socket, Interest::READABLE)?))
    }

    /// Returns the next connection. `None` if the engine passes no further one.
    ///
    /// # Errors
    /// This process has too many descriptors. The connection stays in the queue.
    pub async fn receive(&self) -> Result<Option<PassedConnection>> {
        self.0.async_io(Interest::READABLE, |own| receive(own.as_fd())).await
    }

    /// Tells the engine to pass no further connection. Those that it has accepted still arrive.
    pub fn stop(&self) {
        // It fails only if the engine has ended.
        let _ = shutdown(self.0.as_raw_fd(), Shutdown::Write);
    }
}

fn receive(own: BorrowedFd<'_>) -> Result<Option<PassedConnection>> {
    let ReceivedPacket { bytes, descriptors } = passed_packets::receive(own, PACKET_BYTES)?;
    match <[u8; PACKET_BYTES]>::try_from(bytes.as_slice()) {
        Ok(packet) => {
            let id = ConnectionId(u64::from_be_bytes(packet));
            Ok(Some(PassedConnection { id, socket: descriptors.into_iter().next() }))
        }
        Err(_) if bytes.is_empty() => Ok(None),
        Err(_) => Err(ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn connections_arrive_in_order_with_their_numbers() {
        let (passer, front) = ConnectionPasser::pair().expect("a pair");
        let front = PassedConnections::new(front).expect("watched");
        for number in [1, 2, u64::MAX] {
            let (mut client, served) = UnixStream::pair().expect("a connection");
            passer.pass(ConnectionId(number), served.as_fd()).await.expect("passed");
            drop(served);
            let passed = front.receive().await.expect("no error").expect("a connection");
            assert_eq!(passed.id, ConnectionId(number));
            client.write_all(b"x").expect("it is open");
            let mut received = [0];
            let mut served = UnixStream::from(passed.socket.expect("a descriptor"));
            served.read_exact(&mut received).expect("the same connection");
            assert_eq!(&received, b"x");
        }
        drop(passer);
        assert!(front.receive().await.expect("no error").is_none());
    }

    #[tokio::test]
    async fn a_front_that_stops_still_gets_what_was_accepted() {
        let (passer, front) = ConnectionPasser::pair().expect("a pair");
        let front = PassedConnections::new(front).expect("watched");
        let (_client, served) = UnixStream::pair().expect("a connection");
        passer.pass(ConnectionId(1), served.as_fd()).await.expect("passed");
        assert!(timeout(Duration::from_millis(50), passer.closed()).await.is_err(), "control: not yet");
        front.stop();
        timeout(Duration::from_secs(10), passer.closed()).await.expect("in time").expect("the end");
        passer.pass(ConnectionId(2), served.as_fd()).await.expect("it was accepted before");
        drop(passer);
        for number in 1..=2 {
            let passed = front.receive().await.expect("no error").expect("a connection");
            assert_eq!((passed.id, passed.socket.is_some()), (ConnectionId(number), true));
        }
        assert!(front.receive().await.expect("no error").is_none());
    }

    #[tokio::test]
    async fn nothing_can_be_passed_to_a_front_that_has_ended() {
        let (passer, front) = ConnectionPasser::pair().expect("a pair");
        drop(front);
        timeout(Duration::from_secs(10), passer.closed()).await.expect("in time").expect("the end");
        let (_client, served) = UnixStream::pair().expect("a connection");
        assert!(passer.pass(ConnectionId(1), served.as_fd()).await.is_err());
    }
}
