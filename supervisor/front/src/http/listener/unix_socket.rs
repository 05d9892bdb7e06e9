//! Creates the Unix domain sockets at which the server listens.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use lockhouse_base::path_trust::{Strictness, TrustedOwners, UntrustedPath, check_path};
use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType};
use thiserror::Error;
use tokio::net::UnixListener;

/// Socket file mode: owner and group may connect, if the directory's permissions allow it.
const SOCKET_MODE: u32 = 0o660;

/// Why a Unix domain socket cannot be created at the configured path.
#[derive(Debug, Error)]
pub(super) enum UnixSocketError {
    #[error("{directory}: {source}")]
    Directory { directory: PathBuf, source: io::Error },
    #[error(
        "users other than its owner may write to {directory} and could replace the socket: use a directory of its own, such as $XDG_RUNTIME_DIR/lockhouse"
    )]
    OpenDirectory { directory: PathBuf },
    #[error("{directory} belongs to user {owner}, who could replace the socket")]
    ForeignDirectory { directory: PathBuf, owner: u32 },
    #[error("a file of that name exists and is not a socket: remove it, or choose another path")]
    NotSocket,
    #[error("another process listens there already")]
    InUse,
    #[error("{directory} cannot be used: {source}, who could replace the directory of the socket")]
    Way { directory: PathBuf, source: UntrustedPath },
    #[error("cannot remove the socket of a process that has ended: {0}")]
    Stale(#[source] io::Error),
    #[error("cannot check the existing socket: {0}")]
    Unknown(#[source] io::Error),
    #[error(transparent)]
    System(#[from] io::Error),
}

pub(super) fn bind(path: &Path) -> Result<(UnixListener, SocketFile), UnixSocketError> {
    check_directory(path.parent().unwrap_or(Path::new("/")))?;
    clear_stale(path)?;
    let listener = listener(path)?;
    Ok((listener, SocketFile::new(path)?))
}

/// Checks that no other user can write to the directory of the socket and replace the socket.
fn check_directory(directory: &Path) -> Result<(), UnixSocketError> {
    let shown = directory.to_owned();
    let found = match std::fs::metadata(directory) {
        Ok(found) => found,
        Err(source) => return Err(UnixSocketError::Directory { directory: shown, source }),
    };
    if found.mode() & 0o022 != 0 {
        return Err(UnixSocketError::OpenDirectory { directory: shown });
    }
    let us = nix::unistd::geteuid().as_raw();
    match found.uid() {
        owner if owner == 0 || owner == us => {
            let absolute = std::path::absolute(directory)?;
            let checked = check_path(&absolute, &TrustedOwners::root_and_own(), Strictness::Usual);
            checked.map_err(|source| UnixSocketError::Way { directory: shown, source })
        }
        owner => Err(UnixSocketError::ForeignDirectory { directory: shown, owner }),
    }
}

/// Removes a socket file that was left by a process that has ended. Fails if a process still listens at the socket, or
/// if the file is not a socket.
fn clear_stale(path: &Path) -> Result<(), UnixSocketError> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(UnixSocketError::NotSocket);
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(UnixSocketError::InUse),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(UnixSocketError::Stale)
        }
        Err(error) => Err(UnixSocketError::Unknown(error)),
    }
}

fn listener(path: &Path) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // `bind` creates the file with the socket's mode, so it is never more accessible than that.
    nix::sys::stat::fchmod(&socket, nix::sys::stat::Mode::from_bits_truncate(SOCKET_MODE))?;
    socket::bind(socket.as_raw_fd(), &socket::UnixAddr::new(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE))?;
    socket::listen(&socket, Backlog::MAXCONN)?;
    UnixListener::from_std(socket.into())
}

/// The file of a listening socket. Dropping this value removes the file, unless the file was replaced.
#[derive(Debug)]
pub(in crate::http) struct SocketFile {
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
