//! Passes single sockets to a process that has no event loop, the signer of TLS.

use std::io::Result;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::passed_packets::{ReceivedPacket, receive, send};

/// Passes a socket.
///
/// # Errors
/// The other process has ended, or has not taken many earlier ones.
pub fn send_socket(own: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> Result<()> {
    send(own, &[0], &[socket])
}

/// Takes the socket that waits. `None` if the sender has closed its end.
///
/// # Errors
/// None waits, or this process has too many descriptors.
pub fn receive_socket(own: BorrowedFd<'_>) -> Result<Option<OwnedFd>> {
    let ReceivedPacket { bytes, descriptors } = receive(own, 1)?;
    match descriptors.into_iter().next() {
        Some(socket) => Ok(Some(socket)),
        None if bytes.is_empty() => Ok(None),
        None => Err(std::io::ErrorKind::InvalidData.into()),
    }
}
