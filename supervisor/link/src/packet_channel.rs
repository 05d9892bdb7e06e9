//! A socket for messages as JSON, whose form this crate does not know, with the descriptors that belong to them. Each message is
//! one packet.

use std::io::{ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{MsgFlags, Shutdown, recv, send, shutdown};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::passed_packets::{self, ReceivedPacket};

/// Maximum length of a message in bytes. A chain of ten certificates has some 20 KB.
/// Bound: engines and fronts.
const MESSAGE_BYTES_MAX: usize = 128 * 1024;

/// One end of the socket.
#[derive(Debug)]
pub struct PacketChannel(AsyncFd<OwnedFd>);

impl PacketChannel {
    /// Takes over a connected socket that keeps the boundaries of packets.
    ///
    /// # Errors
    /// The runtime cannot watch the descriptor.
    pub fn new(socket: OwnedFd) -> Result<Self> {
        Ok(Self(passed_packets::watch(socket, Interest::READABLE | Interest::WRITABLE)?))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The message is too long, or the other process has ended.
    pub async fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let json = serde_json::to_vec(message)?;
        if json.len() > MESSAGE_BYTES_MAX {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let send = |own: &OwnedFd| passed_packets::send(own.as_fd(), &json, descriptors);
        self.0.async_io(Interest::WRITABLE, send).await
    }

    /// Waits for the next message. Returns it with its descriptors, in the order in which they were sent.
    ///
    /// # Errors
    /// The other process has ended, this one has too many descriptors, or the message is none of this type.
    pub async fn receive<M: DeserializeOwned>(&self) -> Result<(M, Vec<OwnedFd>)> {
        let receive = |own: &OwnedFd| passed_packets::receive(own.as_fd(), MESSAGE_BYTES_MAX);
        let ReceivedPacket { bytes, descriptors } = self.0.async_io(Interest::READABLE, receive).await?;
        if bytes.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok((serde_json::from_slice(&bytes)?, descriptors))
    }

    /// Tells the other process that no message follows. Its messages can still be received.
    ///
    /// # Errors
    /// The socket is not connected any more.
    pub fn close_sending(&self) -> Result<()> {
        Ok(shutdown(self.0.as_raw_fd(), Shutdown::Write)?)
    }

    /// Sends one byte, without waiting.
    pub(crate) fn send_byte(&self, byte: u8) {
        // It fails only if the other process has ended.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let _ = send(self.0.as_raw_fd(), &[byte], flags);
    }

    /// Waits for a byte of [`Self::send_byte`]. Returns 0 if the other process has ended.
    pub(crate) async fn receive_byte(&self) -> Result<u8> {
        let receive = |own: &OwnedFd| {
            let mut byte = [0];
            recv(own.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT)?;
            Ok(byte[0])
        };
        self.0.async_io(Interest::READABLE, receive).await
    }
}
