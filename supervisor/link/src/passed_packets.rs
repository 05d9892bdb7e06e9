//! Packets that the engine's process passes to the front's process, with descriptors.
#![allow(unsafe_code, reason = "descriptors arrive as bare numbers, and tokio wants a promise about one")]

use std::io::{IoSlice, IoSliceMut, Result};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg, sendmsg,
    socketpair,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A packet that has arrived.
pub(crate) struct ReceivedPacket {
    /// The bytes, at most as many as the receiver had room for.
    pub(crate) bytes: Vec<u8>,
    /// Fewer than were sent if this process could not take them all, because it has too many.
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Maximum number of descriptors of a packet: what the kernel permits (`SCM_MAX_FD`).
const DESCRIPTORS_MAX: usize = 253;

/// Creates a pair of sockets that keep the boundaries of packets.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Sends a packet with descriptors, without waiting.
pub(crate) fn send(own: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    let descriptors: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let control = [ControlMessage::ScmRights(&descriptors)];
    sendmsg::<()>(own.as_raw_fd(), &[IoSlice::new(bytes)], &control, flags, None)?;
    Ok(())
}

/// Receives a packet of at most `bytes_max` bytes, without waiting. It has no bytes if the sender has closed its end.
pub(crate) fn receive(own: BorrowedFd<'_>, bytes_max: usize) -> Result<ReceivedPacket> {
    // The kernel drops a descriptor for which there is no room, so there must be some before the packet is taken.
    drop(own.try_clone_to_owned()?);
    let (mut bytes, mut space) = (vec![0; bytes_max], nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]));
    let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<()>(own.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs().into_iter().flatten() {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just created these descriptors for this process, and nothing else knows their
            // numbers.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    let length = message.bytes;
    bytes.truncate(length);
    Ok(ReceivedPacket { bytes, descriptors })
}

/// Registers a socket with the event loop.
pub(crate) fn watch(socket: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open, with the same number, until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}
