//! The channel over which the engine's process sets up a front's process: settings and certificates, with the descriptors that
//! belong to them. The front confirms each with one byte: 1 if it uses it.

use std::io::{ErrorKind, Result};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::packet_channel::PacketChannel;
use crate::passed_packets;

/// Maximum time until the front confirms a message.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The engine's end.
#[derive(Debug)]
pub struct SetupSender(PacketChannel);

/// The front's end.
#[derive(Debug)]
pub struct SetupReceiver(PacketChannel);

impl SetupSender {
    /// Creates a pair of sockets. Returns the engine's end, and the descriptor from which the front's process makes a
    /// [`SetupReceiver`].
    ///
    /// # Errors
    /// This process has too many descriptors.
    pub fn pair() -> Result<(Self, OwnedFd)> {
        let (own, other) = passed_packets::pair()?;
        Ok((Self(PacketChannel::new(own)?), other))
    }

    /// Sends a message, and waits until the front has confirmed it.
    ///
    /// # Errors
    /// The message is too long, or the front has ended, cannot use it or does not answer.
    pub async fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<()> {
        self.0.send(message, descriptors).await?;
        let confirmed = tokio::time::timeout(CONFIRMATION_TIMEOUT, self.0.receive_byte()).await;
        match confirmed.map_err(|_| ErrorKind::TimedOut)?? {
            1 => Ok(()),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

impl SetupReceiver {
    /// Takes over the front's end of a pair.
    ///
    /// # Errors
    /// The runtime cannot watch the descriptor.
    pub fn new(socket: OwnedFd) -> Result<Self> {
        Ok(Self(PacketChannel::new(socket)?))
    }

    /// Waits for the next message. Returns it with its descriptors, in the order in which they were sent.
    ///
    /// # Errors
    /// The engine has ended, this process has too many descriptors, or the message is none of this type.
    pub async fn receive<M: DeserializeOwned>(&self) -> Result<(M, Vec<OwnedFd>)> {
        self.0.receive().await
    }

    /// Confirms the last message: whether it is used.
    pub fn confirm(&self, is_used: bool) {
        self.0.send_byte(u8::from(is_used));
    }
}
