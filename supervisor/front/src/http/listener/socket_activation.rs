//! Listening sockets that systemd passes to this process (socket activation).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use lockhouse_base::listen::{ListenAddress, Listener, Socket};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{self, AddressFamily, SockType, SockaddrLike, SockaddrStorage, sockopt};
use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};

/// The first descriptor that systemd passes (sd_listen_fds(3)), and the maximum number of them that are kept.
const FIRST_DESCRIPTOR: i32 = 3;
const SOCKETS_MAX: i32 = 64;

/// Why the sockets that systemd passed cannot be used.
#[derive(Debug, Error)]
pub enum SocketActivationError {
    #[error("the sockets that systemd passes: {0}")]
    Environment(#[from] io::Error),
    #[error("file descriptor {number}, which was passed as a socket to listen at: {source}")]
    Descriptor { number: i32, source: DescriptorFault },
    #[error("{0} was passed as a socket, but only Unix domain sockets are possible here")]
    NotUnix(ListenAddress),
}

/// Why a file descriptor that systemd passed is not a usable listening socket.
#[derive(Debug, Error)]
pub enum DescriptorFault {
    #[error("it is not a socket")]
    NotSocket,
    #[error("it is not a listening stream socket (in the unit: ListenStream=, and not Accept=yes)")]
    NotListener,
    #[error("it is neither a TCP nor a Unix domain socket")]
    Family,
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Returns the listening sockets that systemd passed to this process. Empty if there are none.
pub(in crate::http) fn inherited_listeners() -> Result<Vec<Listener>, SocketActivationError> {
    let adopt = |number| {
        let socket = take_descriptor(number);
        // Those that systemd passes are closed already when this process executes a program.
        fcntl(&socket, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(io::Error::from)?;
        adopt(socket).map_err(|source| SocketActivationError::Descriptor { number, source })
    };
    sd_notify::listen_fds()?.map(adopt).collect()
}

/// Returns the listening Unix domain sockets that systemd passed to this process. A TCP socket is an error.
pub(in crate::http) fn inherited_unix_listeners() -> Result<Vec<UnixListener>, SocketActivationError> {
    let unix = |listener: Listener| match listener.socket {
        Socket::Unix(listener) => Ok(listener),
        Socket::Tcp(_) => Err(SocketActivationError::NotUnix(listener.address)),
    };
    inherited_listeners()?.into_iter().map(unix).collect()
}

#[allow(unsafe_code, reason = "A file descriptor that the environment names")]
fn take_descriptor(number: i32) -> OwnedFd {
    // SAFETY: systemd, or the process that started this one, passed the descriptor to this process alone, and it is taken
    // once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Returns duplicates of the sockets that systemd passed to this process, which are taken later.
pub(in crate::http) fn inherited_duplicates() -> Vec<OwnedFd> {
    let count =
        std::env::var("LISTEN_FDS").ok().and_then(|count| count.parse().ok()).unwrap_or(0).min(SOCKETS_MAX);
    // systemd passes them from this descriptor on.
    let numbers = (0..count).map(|index| FIRST_DESCRIPTOR + index);
    numbers.filter_map(|number| duplicate(number).ok()).collect()
}

#[allow(unsafe_code, reason = "A file descriptor that the environment names")]
fn duplicate(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is borrowed for this call only, which fails if it is not open.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    socket.try_clone_to_owned()
}

pub(in crate::http) fn adopt(socket: OwnedFd) -> Result<Listener, DescriptorFault> {
    let waits = socket::getsockopt(&socket, sockopt::AcceptConn).map_err(|_| DescriptorFault::NotSocket)?;
    if !waits || socket::getsockopt(&socket, sockopt::SockType) != Ok(SockType::Stream) {
        return Err(DescriptorFault::NotListener);
    }
    let bound: SockaddrStorage = socket::getsockname(socket.as_raw_fd()).map_err(io::Error::from)?;
    match bound.family() {
        Some(AddressFamily::Inet | AddressFamily::Inet6) => {
            let listener = std::net::TcpListener::from(socket);
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            let address = ListenAddress::Tcp(listener.local_addr()?);
            Ok(Listener { socket: Socket::Tcp(listener), address, file: None })
        }
        Some(AddressFamily::Unix) => {
            let path = bound.as_unix_addr().and_then(|unix| unix.path()).map(Path::to_owned);
            let listener = std::os::unix::net::UnixListener::from(socket);
            listener.set_nonblocking(true)?;
            let listener = UnixListener::from_std(listener)?;
            let address = ListenAddress::Unix(path.unwrap_or_default());
            Ok(Listener { socket: Socket::Unix(listener), address, file: None })
        }
        _ => Err(DescriptorFault::Family),
    }
}
