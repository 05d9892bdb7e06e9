//! Sockets that wait for connections: our own, or those that systemd opened for us.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, SockaddrStorage, sockopt,
};
use tokio::net::{TcpListener, UnixListener};

use super::address::Address;

/// For the owner and the group of the socket: who may connect is also a matter of the directory.
const SOCKET_MODE: u32 = 0o660;

/// A socket, and where it is.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) socket: Socket,
    /// With the port that the kernel chose, where the address left that to it.
    pub(super) address: Address,
    /// Of our own making, to be removed at the end.
    _file: Option<SocketFile>,
}

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Opens the addresses.
///
/// # Errors
/// The address and what is wrong with it.
pub(super) async fn bind(addresses: &[Address]) -> Result<Vec<Listening>, String> {
    let mut listening = Vec::new();
    for address in addresses {
        let opened = match address {
            Address::Tcp(tcp) => bind_tcp(*tcp).await.map_err(|error| error.to_string()),
            Address::Unix(path) => bind_unix(path),
        };
        listening.push(opened.map_err(|reason| format!("cannot listen at {address}: {reason}"))?);
    }
    Ok(listening)
}

async fn bind_tcp(address: SocketAddr) -> io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let address = Address::Tcp(listener.local_addr()?);
    Ok(Listening { socket: Socket::Tcp(listener), address, _file: None })
}

fn bind_unix(path: &Path) -> Result<Listening, String> {
    check_directory(path)?;
    clear_stale(path)?;
    let told = |error: io::Error| error.to_string();
    let listener = unix_listener(path).map_err(told)?;
    let file = SocketFile::of(path).map_err(told)?;
    Ok(Listening {
        socket: Socket::Unix(listener),
        address: Address::Unix(path.to_owned()),
        _file: Some(file),
    })
}

/// Whoever may write there could put a socket of their own in the place of ours.
fn check_directory(path: &Path) -> Result<(), String> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let shown = directory.display();
    let found = std::fs::metadata(directory).map_err(|error| format!("{shown}: {error}"))?;
    if found.mode() & 0o022 != 0 {
        return Err(format!(
            "others than its owner may write to {shown}, and could take the socket's place: use a directory of its own, such as $XDG_RUNTIME_DIR/lockhouse"
        ));
    }
    let us = nix::unistd::geteuid().as_raw();
    match found.uid() {
        owner if owner == 0 || owner == us => Ok(()),
        owner => Err(format!("{shown} belongs to the user {owner}, who could take the socket's place")),
    }
}

/// Removes the socket of a process that is gone.
fn clear_stale(path: &Path) -> Result<(), String> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(
            "there is a file of that name that is no socket: remove it, or choose another path".into()
        );
    }
    match UnixStream::connect(path) {
        Ok(_) => Err("another process listens there already".into()),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|error| format!("the socket of a process that is gone: {error}")),
        Err(error) => Err(format!("the socket that is there: {error}")),
    }
}

fn unix_listener(path: &Path) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // The file is made with the mode of the socket, so that it is never open to more.
    nix::sys::stat::fchmod(&socket, nix::sys::stat::Mode::from_bits_truncate(SOCKET_MODE))?;
    socket::bind(socket.as_raw_fd(), &socket::UnixAddr::new(path)?)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE))?;
    socket::listen(&socket, Backlog::MAXCONN)?;
    UnixListener::from_std(socket.into())
}

/// The file of a socket. It is removed when this is dropped, if it is still the same.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
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

/// The sockets that systemd opened for this process, none where it opened none.
///
/// # Errors
/// A socket that cannot be used, and why.
pub(super) fn inherited() -> Result<Vec<Listening>, String> {
    let told = |error: io::Error| format!("the sockets that systemd passes: {error}");
    sd_notify::listen_fds()
        .map_err(told)?
        .map(|number| {
            adopt(owned(number)).map_err(|reason| {
                format!("file descriptor {number}, which was passed as a socket to listen at: {reason}")
            })
        })
        .collect()
}

#[allow(unsafe_code, reason = "A file descriptor that the environment names")]
fn owned(number: i32) -> OwnedFd {
    // SAFETY: it is open, which `listen_fds` has seen, and ours: LISTEN_PID names this process, which reads it once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn adopt(socket: OwnedFd) -> Result<Listening, String> {
    let waits = socket::getsockopt(&socket, sockopt::AcceptConn).map_err(|_| "it is no socket")?;
    if !waits || socket::getsockopt(&socket, sockopt::SockType) != Ok(SockType::Stream) {
        return Err(
            "it is no stream socket that listens (in the unit: ListenStream=, and not Accept=yes)".into()
        );
    }
    let told = |error: io::Error| error.to_string();
    let bound: SockaddrStorage =
        socket::getsockname(socket.as_raw_fd()).map_err(|error| told(error.into()))?;
    match bound.family() {
        Some(AddressFamily::Inet | AddressFamily::Inet6) => {
            let listener = std::net::TcpListener::from(socket);
            listener.set_nonblocking(true).map_err(told)?;
            let listener = TcpListener::from_std(listener).map_err(told)?;
            let address = Address::Tcp(listener.local_addr().map_err(told)?);
            Ok(Listening { socket: Socket::Tcp(listener), address, _file: None })
        }
        Some(AddressFamily::Unix) => {
            let path = bound.as_unix_addr().and_then(|unix| unix.path()).map(Path::to_owned);
            let listener = std::os::unix::net::UnixListener::from(socket);
            listener.set_nonblocking(true).map_err(told)?;
            let listener = UnixListener::from_std(listener).map_err(told)?;
            let address = Address::Unix(path.unwrap_or_default());
            Ok(Listening { socket: Socket::Unix(listener), address, _file: None })
        }
        _ => Err("it is neither of TCP nor a Unix domain socket".into()),
    }
}
