//! The supervisor's end of a UNIX socket to a worker or a zygote.
//!
//! The socket types of Tokio always register for both events: received data, and free space in the send buffer. The
//! kernel reports free space each time the peer reads, so each message to a worker would wake the supervisor a second
//! time, for nothing. [`Socket`] registers for free space only after a write has found the socket full.
#![allow(unsafe_code, reason = "tokio wants a promise about the descriptor")]

use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

use nix::sys::socket::{MsgFlags, recv, send};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The supervisor's end of a UNIX socket. Reads and writes do not block the thread.
#[derive(Debug)]
pub struct Socket {
    readable: AsyncFd<OwnedFd>,
    /// A duplicate of the socket's descriptor, with which writes wait for free space. Created when a write finds the
    /// socket full for the first time.
    writable: OnceLock<AsyncFd<OwnedFd>>,
}

impl Socket {
    pub(super) fn new(socket: OwnedFd) -> Result<Self> {
        Ok(Self { readable: watch(socket, Interest::READABLE)?, writable: OnceLock::new() })
    }

    /// Reads from a stream socket into `buffer`. Returns the number of bytes read, which is 0 if the peer has closed
    /// its end. Cancel-safe.
    ///
    /// # Errors
    /// Errors of recv(2).
    pub async fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let mut readable = self.readable.readable().await?;
            match recv(self.descriptor(), buffer, MsgFlags::MSG_DONTWAIT).map_err(Error::from) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => readable.clear_ready(),
                Ok(count) if count < buffer.len() => {
                    // The socket is empty now. The kernel reports the next data again.
                    readable.clear_ready();
                    return Ok(count);
                }
                result => return result,
            }
        }
    }

    /// Waits for data, then calls `receive` with the descriptor and returns its result. If `receive` fails with
    /// `WouldBlock`, waits and calls it again.
    pub(super) async fn receive_with<T>(&self, mut receive: impl FnMut(RawFd) -> Result<T>) -> Result<T> {
        loop {
            let mut readable = self.readable.readable().await?;
            match readable.try_io(|socket| receive(socket.get_ref().as_raw_fd())) {
                Ok(result) => return result,
                Err(_would_block) => {}
            }
        }
    }

    /// Writes bytes and returns how many were written. Waits while the socket is full. Cancel-safe.
    ///
    /// # Errors
    /// Errors of send(2).
    pub async fn write(&self, bytes: &[u8]) -> Result<usize> {
        loop {
            match send(self.descriptor(), bytes, MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT)
                .map_err(Error::from)
            {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_space().await?,
                result => return result,
            }
        }
    }

    /// Returns the socket's file descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.readable.get_ref().as_raw_fd()
    }

    async fn wait_for_space(&self) -> Result<()> {
        let writable = match self.writable.get() {
            Some(writable) => writable,
            None => {
                let duplicate = watch(self.readable.get_ref().try_clone()?, Interest::WRITABLE)?;
                self.writable.get_or_init(|| duplicate)
            }
        };
        writable.writable().await?.clear_ready();
        Ok(())
    }
}

fn watch(socket: OwnedFd, interest: Interest) -> Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open, with the same number, until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(socket, interest) }?)
}
