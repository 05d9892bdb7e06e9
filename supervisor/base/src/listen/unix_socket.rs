//! Creates Unix domain sockets.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType};
use thiserror::Error;
use tokio::net::UnixListener;

/// Why a socket cannot be opened.
#[derive(Debug, Error)]
pub enum SocketError {
    #[error("a file of that name exists and is not a socket: remove it, or choose another path")]
    NotSocket,
    #[error("another process listens there already")]
    InUse,
    #[error("cannot remove the socket of a process that has ended: {0}")]
    Stale(#[source] io::Error),
    #[error("cannot check the existing socket: {0}")]
    Unknown(#[source] io::Error),
    #[error(transparent)]
    System(#[from] io::Error),
}

pub(super) fn bind(path: &Path, mode: u32) -> Result<(UnixListener, SocketFile), SocketError> {
    clear_stale(path)?;
    let listener = listener(path, mode)?;
    Ok((listener, SocketFile::new(path)?))
}

/// Removes a socket file that was left by a process that has ended. Fails if a process still listens at the socket, or
/// if the file is not a socket.
fn clear_stale(path: &Path) -> Result<(), SocketError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(SocketError::NotSocket);
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(SocketError::InUse),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(SocketError::Stale)
        }
        Err(error) => Err(SocketError::Unknown(error)),
    }
}

fn listener(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // `bind` creates the file with the socket's mode, so it is never more accessible than that.
    nix::sys::stat::fchmod(&socket, nix::sys::stat::Mode::from_bits_truncate(mode))?;
    socket::bind(socket.as_raw_fd(), &socket::UnixAddr::new(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    socket::listen(&socket, Backlog::MAXCONN)?;
    UnixListener::from_std(socket.into())
}

/// The file of a listening socket. Dropping this value removes the file, unless the file was replaced.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}
