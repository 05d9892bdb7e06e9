//! The socket between the supervisor and a zygote. Each datagram carries one message, with file descriptors attached if
//! the message needs them.
#![allow(unsafe_code, reason = "descriptors arrive as bare numbers")]

use std::io::IoSliceMut;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use lockhouse_protocol::zygote_messages::ZYGOTE_FRAME_BYTES_MAX;
use lockhouse_protocol::{FromZygote, ToZygote, frame};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, socketpair,
};

use super::super::PoolError;
use crate::socket::Socket;

/// The supervisor's end of the socket to a zygote.
pub(super) struct ZygoteSocket {
    socket: Socket,
    /// The buffer for received datagrams, which is as large as the largest message.
    buffer: Vec<u8>,
}

impl ZygoteSocket {
    /// Creates a socket pair. Returns the supervisor's end and the end for the zygote.
    pub(super) fn pair() -> Result<(Self, OwnedFd), PoolError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).map_err(PoolError::system)?;
        let socket = Socket::new(ours).map_err(|error| PoolError::zygote(error.to_string()))?;
        Ok((Self { socket, buffer: vec![0; ZYGOTE_FRAME_BYTES_MAX as usize] }, theirs))
    }

    /// Sends a message to the zygote; waits while the socket is full.
    pub(super) async fn send(&self, message: &ToZygote) -> std::io::Result<()> {
        let frame = frame::encode(message, ZYGOTE_FRAME_BYTES_MAX).map_err(std::io::Error::other)?;
        self.socket.write(&frame).await.map(drop)
    }

    /// Receives the next message from the zygote with the attached descriptors. Returns `None` if the zygote has closed
    /// its end of the socket.
    pub(super) async fn receive(&mut self) -> Result<Option<(FromZygote, Vec<OwnedFd>)>, PoolError> {
        let Self { socket, buffer } = self;
        let received = socket.receive_with(|socket| receive_datagram(socket, buffer)).await;
        let (count, descriptors) = received.map_err(|error| PoolError::zygote(error.to_string()))?;
        if count == 0 {
            return Ok(None);
        }
        let message = frame::decode(&self.buffer[..count], ZYGOTE_FRAME_BYTES_MAX)
            .map_err(|error| PoolError::zygote(error.to_string()))?;
        Ok(Some((message, descriptors)))
    }
}

/// Receives one datagram into `buffer`. Returns its length and the attached descriptors. The length 0 means that the
/// other end is closed.
fn receive_datagram(socket: RawFd, buffer: &mut [u8]) -> std::io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; 2]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket, &mut parts, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just created these descriptors for this process, and nothing else knows their
            // numbers.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    Ok((message.bytes, descriptors))
}
