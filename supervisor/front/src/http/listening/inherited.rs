//! Sockets that systemd opened for this process.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use nix::sys::socket::{self, AddressFamily, SockType, SockaddrLike, SockaddrStorage, sockopt};
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};

use super::{Listening, Socket};
use crate::http::address::Address;

/// Why the sockets of systemd cannot be used.
#[derive(Debug, Error)]
pub enum InheritError {
    #[error("the sockets that systemd passes: {0}")]
    Environment(#[from] io::Error),
    #[error("file descriptor {number}, which was passed as a socket to listen at: {source}")]
    Descriptor { number: i32, source: DescriptorFault },
}

/// What is wrong with a descriptor.
#[derive(Debug, Error)]
pub enum DescriptorFault {
    #[error("it is no socket")]
    NoSocket,
    #[error("it is no stream socket that listens (in the unit: ListenStream=, and not Accept=yes)")]
    NoListener,
    #[error("it is neither of TCP nor a Unix domain socket")]
    Family,
    #[error(transparent)]
    System(#[from] io::Error),
}

/// The sockets that systemd opened for this process, none where it opened none.
pub(in crate::http) fn inherited() -> Result<Vec<Listening>, InheritError> {
    let adopt = |number| adopt(owned(number)).map_err(|source| InheritError::Descriptor { number, source });
    sd_notify::listen_fds()?.map(adopt).collect()
}

#[allow(unsafe_code, reason = "A file descriptor that the environment names")]
fn owned(number: i32) -> OwnedFd {
    // SAFETY: it is open, which `listen_fds` has seen, and ours: LISTEN_PID names this process, which reads it once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn adopt(socket: OwnedFd) -> Result<Listening, DescriptorFault> {
    let waits = socket::getsockopt(&socket, sockopt::AcceptConn).map_err(|_| DescriptorFault::NoSocket)?;
    if !waits || socket::getsockopt(&socket, sockopt::SockType) != Ok(SockType::Stream) {
        return Err(DescriptorFault::NoListener);
    }
    let bound: SockaddrStorage = socket::getsockname(socket.as_raw_fd()).map_err(io::Error::from)?;
    match bound.family() {
        Some(AddressFamily::Inet | AddressFamily::Inet6) => {
            let listener = std::net::TcpListener::from(socket);
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            let address = Address::Tcp(listener.local_addr()?);
            Ok(Listening { socket: Socket::Tcp(listener), address, _file: None })
        }
        Some(AddressFamily::Unix) => {
            let path = bound.as_unix_addr().and_then(|unix| unix.path()).map(Path::to_owned);
            let listener = std::os::unix::net::UnixListener::from(socket);
            listener.set_nonblocking(true)?;
            let listener = UnixListener::from_std(listener)?;
            let address = Address::Unix(path.unwrap_or_default());
            Ok(Listening { socket: Socket::Unix(listener), address, _file: None })
        }
        _ => Err(DescriptorFault::Family),
    }
}
