//! The socket between the supervisor and a zygote. Each datagram carries one message, with file descriptors attached if
//! the message needs them.
#![allow(
    unsafe_code,
    reason = "tokio wants a promise about the descriptor, and descriptors arrive as bare numbers"
)]

use std::io::{Error, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use lockhouse_protocol::zygote_messages::ZYGOTE_FRAME_BYTES_MAX;
use lockhouse_protocol::{FromZygote, ToZygote, frame};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg, socketpair,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::super::PoolError;

/// The supervisor's end of the socket to a zygote.
pub(super) struct ZygoteSocket(AsyncFd<OwnedFd>);

impl ZygoteSocket {
    /// Creates a socket pair. Returns the supervisor's end and the end for the zygote.
    pub(super) fn pair() -> Result<(Self, OwnedFd), PoolError> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).map_err(PoolError::system)?;
        nix::fcntl::fcntl(&ours, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))
            .map_err(PoolError::system)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        // SAFETY: an `OwnedFd` stays open, with the same number, until it is dropped.
        let watched = unsafe { AsyncFd::register_with_interest(ours, interest) };
        Ok((Self(watched.map_err(|error| PoolError::zygote(error.to_string()))?), theirs))
    }

    /// Sends a message to the zygote; waits while the socket is full.
    pub(super) async fn send(&self, message: &ToZygote) -> nix::Result<()> {
        let frame = frame::encode(message, ZYGOTE_FRAME_BYTES_MAX).map_err(|_| nix::Error::EMSGSIZE)?;
        let send = |socket: &OwnedFd| {
            sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(&frame)], &[], MsgFlags::MSG_NOSIGNAL, None)
                .map_err(Error::from)
        };
        let sent = self.0.async_io(Interest::WRITABLE, send).await;
        sent.map(drop).map_err(|error| nix::Error::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Receives the next message from the zygote with the attached descriptors. Returns `None` if the zygote has closed
    /// its end of the socket.
    pub(super) async fn receive(&self) -> Result<Option<(FromZygote, Vec<OwnedFd>)>, PoolError> {
        let received = self.0.async_io(Interest::READABLE, receive_datagram).await;
        let (bytes, descriptors) = received.map_err(|error| PoolError::zygote(error.to_string()))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let message = frame::decode(&bytes, ZYGOTE_FRAME_BYTES_MAX)
            .map_err(|error| PoolError::zygote(error.to_string()))?;
        Ok(Some((message, descriptors)))
    }
}

/// Receives one datagram with its descriptors. An empty datagram means that the other end is closed.
fn receive_datagram(socket: &OwnedFd) -> std::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut buffer = vec![0; ZYGOTE_FRAME_BYTES_MAX as usize];
    let mut space = nix::cmsg_space!([RawFd; 2]);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just created these descriptors for this process, and nothing else knows their
            // numbers.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let bytes = message.bytes;
    buffer.truncate(bytes);
    Ok((buffer, descriptors))
}
