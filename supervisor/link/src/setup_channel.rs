//! The channel over which the engine's process sets up the front's process that it has started: settings and certificates as
//! JSON, whose form this crate does not know, with the descriptors that belong to them. The front confirms each with one byte:
//! 1 if it uses it.

use std::io::{ErrorKind, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, recv, send};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::passed_packets::{self, ReceivedPacket};

/// Maximum length of a message in bytes. A chain of ten certificates has some 20 KB.
/// Bound: engines and fronts.
const MESSAGE_BYTES_MAX: usize = 128 * 1024;
/// Maximum time until the front confirms a message.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The engine's end.
#[derive(Debug)]
pub struct SetupSender(AsyncFd<OwnedFd>);

/// The front's end.
#[derive(Debug)]
pub struct SetupReceiver(AsyncFd<OwnedFd>);

impl SetupSender {
    /// Creates a pair of sockets. Returns the engine's end, and the descriptor from which the front's process makes a
    /// [`SetupReceiver`].
    ///
    /// # Errors
    /// This process has too many descriptors.
    pub fn pair() -> Result<(Self, OwnedFd)> {
        let (own, other) = passed_packets::pair()?;
        Ok((Self(passed_packets::watch(own, Interest::READABLE | Interest::WRITABLE)?), other))
    }

    /// Sends a message, and waits until the front has confirmed it.
    ///
    /// # Errors
    /// The message is too long, or the front has ended, cannot use it or does not answer.
    pub async fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        let json = serde_json::to_vec(message)?;
        if json.len() > MESSAGE_BYTES_MAX {
            return Err(ErrorKind::FileTooLarge.into());
        }
        let send = |own: &OwnedFd| passed_packets::send(own.as_fd(), &json, descriptors);
        self.0.async_io(Interest::WRITABLE, send).await?;
        let confirmed = self.0.async_io(Interest::READABLE, |own| {
            let mut answer = [0];
            recv(own.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
            Ok(answer == [1])
        });
        match tokio::time::timeout(CONFIRMATION_TIMEOUT, confirmed)
            .await
            .map_err(|_| ErrorKind::TimedOut)??
        {
            true => Ok(()),
            false => Err(ErrorKind::InvalidData.into()),
        }
    }
}

impl SetupReceiver {
    /// Takes over the front's end of a pair.
    ///
    /// # Errors
    /// The runtime cannot watch the descriptor.
    pub fn new(socket: OwnedFd) -> Result<Self> {
        Ok(Self(passed_packets::watch(socket, Interest::READABLE)?))
    }

    /// Waits for the next message. Returns it with its descriptors, in the order in which they were sent.
    ///
    /// # Errors
    /// The engine has ended, this process has too many descriptors, or the message is none of this type.
    pub async fn receive<M: DeserializeOwned>(&self) -> Result<(M, Vec<OwnedFd>)> {
        let receive = |own: &OwnedFd| passed_packets::receive(own.as_fd(), MESSAGE_BYTES_MAX);
        let ReceivedPacket { bytes, descriptors } = self.0.async_io(Interest::READABLE, receive).await?;
        if bytes.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok((serde_json::from_slice(&bytes)?, descriptors))
    }

    /// Confirms the last message: whether it is used.
    pub fn confirm(&self, is_used: bool) {
        // It fails only if the engine has ended.
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        let _ = send(self.0.as_raw_fd(), &[u8::from(is_used)], flags);
    }
}
