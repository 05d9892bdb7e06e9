//! The socket of the page: a port of `localhost` or of another loopback address, or a Unix domain socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lockhouse_base::confined_mark::refuses_peer;
use lockhouse_base::http_checks::host_check::HostName;
use lockhouse_base::localhost_listener::LocalhostListener;
use lockhouse_base::path_trust::{Strictness, TrustedOwners, check_path};
use lockhouse_base::tcp_connection::TcpConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};

/// The mode of the Unix domain socket: only its own user may connect.
const SOCKET_MODE: u32 = 0o600;

/// Where the page listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// This port of 127.0.0.1 and ::1, the addresses of `localhost`. Port 0 means any free port.
    Localhost(u16),
    /// Another address of the loopback interface.
    Loopback(SocketAddr),
    Unix(PathBuf),
}

/// Why a text is no address for the page.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not an address of this machine: use localhost:PORT, 127.0.0.1:PORT, [::1]:PORT or unix:/PATH"
)]
pub struct InvalidAddress(String);

impl FromStr for ListenAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| path.starts_with('/')) {
            return Ok(Self::Unix(path.into()));
        }
        if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
            return Ok(Self::Localhost(port));
        }
        let address = text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
        let address = address.ok_or_else(|| InvalidAddress(text.to_owned()))?;
        Ok(match [Ipv4Addr::LOCALHOST.into(), IpAddr::from(Ipv6Addr::LOCALHOST)].contains(&address.ip()) {
            true => Self::Localhost(address.port()),
            false => Self::Loopback(address),
        })
    }
}

/// Why the page cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("the page cannot listen at localhost:{port}: {source}")]
    Localhost { port: u16, source: io::Error },
    #[error("the page cannot listen at {address}: {source}")]
    Tcp { address: SocketAddr, source: io::Error },
    #[error("the page cannot listen at {path}: {source}")]
    Unix { path: PathBuf, source: io::Error },
}

/// The open socket of the page. Dropping this value closes it, and removes the file of a Unix domain socket.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    /// Further hosts that requests may name.
    hosts: Vec<HostName>,
}

#[derive(Debug)]
enum Socket {
    Localhost(LocalhostListener),
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

/// The bytes of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection of a browser.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    /// `None` for a Unix domain socket.
    pub(super) ends: Option<TcpConnection>,
}

impl Connection {
    fn of_tcp(stream: TcpStream) -> io::Result<Self> {
        // Small events must not wait for the acknowledgement of earlier ones.
        let _ = stream.set_nodelay(true);
        let ends = Some(TcpConnection::of(&stream)?);
        Ok(Self { stream: Box::new(stream), ends })
    }
}

impl Listener {
    /// Opens the socket. `hosts` are further hosts that requests may name: those of a proxy.
    ///
    /// # Errors
    /// [`ListenError`] if the address is in use, or other users could replace the Unix domain socket.
    pub async fn open(address: &ListenAddress, hosts: Vec<HostName>) -> Result<Self, ListenError> {
        match address {
            ListenAddress::Localhost(port) => {
                let failed = |source| ListenError::Localhost { port: *port, source };
                let listener = LocalhostListener::bind(*port).await.map_err(failed)?;
                Ok(Self { socket: Socket::Localhost(listener), hosts })
            }
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
            Socket::Localhost(listener) => Some(listener.port()),
            Socket::Tcp(_, address) => Some(address.port()),
            Socket::Unix(..) => None,
        }
    }

    /// Returns the address for a person: `localhost:PORT`, `IP:PORT`, or the path of the socket.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.socket {
            Socket::Localhost(listener) => format!("localhost:{}", listener.port()),
            Socket::Tcp(_, address) => address.to_string(),
            Socket::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// Returns the hosts that requests may name, beside the address of their connection. A Unix domain socket is
    /// reached through a forwarded port, whose number only the person knows.
    pub(super) fn hosts(&self) -> Vec<HostName> {
        match &self.socket {
            Socket::Localhost(_) | Socket::Tcp(..) => self.hosts.clone(),
            Socket::Unix(..) => HostName::any_loopback(),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Connection> {
        match &self.socket {
            Socket::Localhost(listener) => Connection::of_tcp(listener.accept().await?),
            Socket::Tcp(listener, _) => Connection::of_tcp(listener.accept().await?.0),
            Socket::Unix(listener, _) => loop {
                let (stream, _) = listener.accept().await?;
                let peer = stream.peer_cred()?;
                let (uid, id) = (peer.uid(), peer.pid().and_then(|id| u32::try_from(id).ok()));
                if (uid == 0 || uid == nix::unistd::geteuid().as_raw()) && !refuses_peer(id) {
                    return Ok(Connection { stream: Box::new(stream), ends: None });
                }
                tracing::warn!("rejected a connection of user {uid}, or of a sandboxed server, to the page");
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
    let directory = std::path::absolute(path.parent().unwrap_or(Path::new("/")))?;
    check_path(&directory, &TrustedOwners::root_and_own(), Strictness::Usual).map_err(|untrusted| {
        let reason = format!(
            "{untrusted}, who could replace the socket: use a directory of your own, such as $XDG_RUNTIME_DIR"
        );
        io::Error::new(io::ErrorKind::PermissionDenied, reason)
    })?;
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
        for (address, expected) in [
            ("127.0.0.1:0", ListenAddress::Localhost(0)),
            ("[::1]:80", ListenAddress::Localhost(80)),
            ("localhost:80", ListenAddress::Localhost(80)),
            ("127.1.2.3:80", ListenAddress::Loopback(([127, 1, 2, 3], 80).into())),
            ("unix:/run/x.sock", ListenAddress::Unix("/run/x.sock".into())),
        ] {
            assert_eq!(address.parse::<ListenAddress>().ok(), Some(expected), "{address}");
        }
        for address in
            ["0.0.0.0:80", "[::]:80", "192.168.0.1:80", "localhost:x", "localhost", "unix:x.sock", "80", ""]
        {
            assert!(address.parse::<ListenAddress>().is_err(), "{address}");
        }
    }
}
