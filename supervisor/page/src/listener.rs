//! The socket of the page: a port of the loopback interface, or a Unix domain socket.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

use super::request_check::PermittedHosts;

/// The mode of the Unix domain socket: only its own user may connect.
const SOCKET_MODE: u32 = 0o600;

/// Where the page listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address of the loopback interface. Port 0 means any free port.
    Loopback(SocketAddr),
    Unix(PathBuf),
}

/// Why a text is no address for the page.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not an address of this machine: use 127.0.0.1:PORT, [::1]:PORT or unix:/PATH")]
pub struct InvalidAddress(String);

impl FromStr for ListenAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| path.starts_with('/')) {
            return Ok(Self::Unix(path.into()));
        }
        let address = text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
        address.map(Self::Loopback).ok_or_else(|| InvalidAddress(text.to_owned()))
    }
}

/// Why the page cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("the page cannot listen at {address}: {source}")]
    Tcp { address: SocketAddr, source: io::Error },
    #[error("the page cannot listen at {path}: {source}")]
    Unix { path: PathBuf, source: io::Error },
}

/// The open socket of the page. Dropping this value closes it, and removes the file of a Unix domain socket.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    /// Further values of `Host` that requests may have.
    hosts: Vec<String>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

/// A connection of a browser.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Listener {
    /// Opens the socket. `hosts` are further values of `Host` that requests may have: those of a proxy.
    ///
    /// # Errors
    /// [`ListenError`] if the address is in use, or other users could replace the Unix domain socket.
    pub async fn open(address: &ListenAddress, hosts: Vec<String>) -> Result<Self, ListenError> {
        match address {
            ListenAddress::Loopback(address) => {
                let failed = |source| ListenError::Tcp { address: *address, source };
                let listener = TcpListener::bind(address).await.map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                Ok(Self { socket: Socket::Tcp(listener, bound), hosts })
            }
            ListenAddress::Unix(path) => {
                let listener =
                    bind_unix(path).map_err(|source| ListenError::Unix { path: path.clone(), source })?;
                Ok(Self { socket: Socket::Unix(listener, path.clone()), hosts })
            }
        }
    }

    /// Returns the port; `None` for a Unix domain socket.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            Socket::Tcp(_, address) => Some(address.port()),
            Socket::Unix(..) => None,
        }
    }

    /// Returns the address for a person: `IP:PORT`, or the path of the socket.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.socket {
            Socket::Tcp(_, address) => address.to_string(),
            Socket::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    pub(super) fn permitted_hosts(&self) -> PermittedHosts {
        match &self.socket {
            Socket::Tcp(_, address) => {
                let own = [address.to_string(), format!("localhost:{}", address.port())];
                PermittedHosts::Exactly(own.into_iter().chain(self.hosts.clone()).collect())
            }
            Socket::Unix(..) => PermittedHosts::LoopbackWithAnyPort,
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        match &self.socket {
            Socket::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // Small events must not wait for the acknowledgement of earlier ones.
                let _ = stream.set_nodelay(true);
                Ok(Box::new(stream))
            }
            Socket::Unix(listener, _) => loop {
                let (stream, _) = listener.accept().await?;
                let uid = stream.peer_cred()?.uid();
                if uid == 0 || uid == nix::unistd::geteuid().as_raw() {
                    return Ok(Box::new(stream));
                }
                tracing::warn!("rejected a connection of user {uid} to the page");
            },
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Creates the Unix domain socket. A directory to which other users can write is rejected, since they could replace the
/// socket.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let metadata = std::fs::metadata(directory)?;
    if metadata.mode() & 0o022 != 0 {
        let reason = "other users may write to its directory: use one of your own, such as $XDG_RUNTIME_DIR";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    // A user who connects before the mode is set is rejected by `accept`.
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_listens_on_this_machine_alone() {
        for address in ["127.0.0.1:0", "[::1]:80", "127.1.2.3:80", "unix:/run/x.sock"] {
            assert!(address.parse::<ListenAddress>().is_ok(), "{address}");
        }
        for address in ["0.0.0.0:80", "[::]:80", "192.168.0.1:80", "localhost:80", "unix:x.sock", "80", ""] {
            assert!(address.parse::<ListenAddress>().is_err(), "{address}");
        }
    }
}
