//! The socket of the page: a port of `localhost` or of another loopback address, or a Unix domain socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::str::FromStr;

use lockhouse_base::http_checks::host_check::HostName;
use lockhouse_base::listen::{self, ListenAddress, Listener as OpenSocket, Socket, SocketError, Stream};
use lockhouse_base::localhost_listener::LocalhostListener;
use lockhouse_base::path_trust::{Strictness, TrustedOwners, UntrustedPath, check_path};
use lockhouse_base::tcp_connection::TcpConnection;
use lockhouse_base::unix_accept;
use tokio::net::{TcpStream, UnixListener};

/// The mode of the Unix domain socket: only its own user may connect.
const SOCKET_MODE: u32 = 0o600;

/// Where the page listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageAddress {
    /// This port of 127.0.0.1 and ::1, the addresses of `localhost`. Port 0 means any free port.
    Localhost(u16),
    /// Another address of the loopback interface, or a Unix domain socket.
    Other(ListenAddress),
}

/// Why a text is no address for the page.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0:?} is not an address of this machine: use localhost:PORT, 127.0.0.1:PORT, [::1]:PORT or unix:/PATH"
)]
pub struct InvalidAddress(String);

impl FromStr for PageAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        if let Some(port) = text.strip_prefix("localhost:").and_then(|port| port.parse().ok()) {
            return Ok(Self::Localhost(port));
        }
        let localhost = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        match text.parse() {
            Ok(ListenAddress::Tcp(address)) if localhost.contains(&address.ip()) => {
                Ok(Self::Localhost(address.port()))
            }
            Ok(ListenAddress::Tcp(address)) if !address.ip().is_loopback() => {
                Err(InvalidAddress(text.to_owned()))
            }
            Ok(address) => Ok(Self::Other(address)),
            Err(_) => Err(InvalidAddress(text.to_owned())),
        }
    }
}

/// Why the page cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot listen at {at}: {source}")]
pub struct ListenError {
    at: String,
    source: ListenFault,
}

#[derive(Debug, thiserror::Error)]
enum ListenFault {
    #[error("{0}, who could replace the socket: use a directory of your own, such as $XDG_RUNTIME_DIR")]
    Directory(#[from] UntrustedPath),
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// The open socket of the page. Dropping this value closes it, and removes the file of a Unix domain socket.
#[derive(Debug)]
pub struct Listener {
    socket: PageSocket,
    /// Further hosts that requests may name.
    hosts: Vec<HostName>,
}

#[derive(Debug)]
enum PageSocket {
    Localhost(LocalhostListener),
    Other(OpenSocket),
}

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
    pub async fn open(address: &PageAddress, hosts: Vec<HostName>) -> Result<Self, ListenError> {
        let failed = |source| {
            let at = match address {
                PageAddress::Localhost(port) => format!("localhost:{port}"),
                PageAddress::Other(ListenAddress::Unix(path)) => path.display().to_string(),
                PageAddress::Other(address) => address.to_string(),
            };
            ListenError { at, source }
        };
        let socket = open_socket(address).await.map_err(failed)?;
        Ok(Self { socket, hosts })
    }

    /// Returns the port; `None` for a Unix domain socket.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            PageSocket::Localhost(listener) => Some(listener.port()),
            PageSocket::Other(OpenSocket { address: ListenAddress::Tcp(address), .. }) => {
                Some(address.port())
            }
            PageSocket::Other(_) => None,
        }
    }

    /// Returns the address for a person: `localhost:PORT`, `IP:PORT`, or the path of the socket.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.socket {
            PageSocket::Localhost(listener) => format!("localhost:{}", listener.port()),
            PageSocket::Other(listener) => listener.address.to_string(),
        }
    }

    /// Returns the hosts that requests may name, beside the address of their connection. A Unix domain socket is
    /// reached through a forwarded port, whose number only the person knows.
    pub(super) fn hosts(&self) -> Vec<HostName> {
        match self.port() {
            Some(_) => self.hosts.clone(),
            None => HostName::any_loopback(),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Connection> {
        match &self.socket {
            PageSocket::Localhost(listener) => Connection::of_tcp(listener.accept().await?),
            PageSocket::Other(OpenSocket { socket: Socket::Tcp(listener), .. }) => {
                Connection::of_tcp(listener.accept().await?.0)
            }
            PageSocket::Other(OpenSocket { socket: Socket::Unix(listener), .. }) => {
                accept_own(listener).await
            }
        }
    }
}

/// Opens the socket. The directory of a Unix domain socket is rejected if other users can write to it, since they could
/// replace the socket.
async fn open_socket(address: &PageAddress) -> Result<PageSocket, ListenFault> {
    if let PageAddress::Other(ListenAddress::Unix(path)) = address {
        let directory = std::path::absolute(path.parent().unwrap_or(Path::new("/")));
        let directory = directory.map_err(SocketError::from)?;
        check_path(&directory, &TrustedOwners::root_and_own(), Strictness::Usual)?;
    }
    Ok(match address {
        PageAddress::Localhost(port) => {
            PageSocket::Localhost(LocalhostListener::bind(*port).await.map_err(SocketError::from)?)
        }
        PageAddress::Other(address) => PageSocket::Other(listen::bind(address, SOCKET_MODE).await?),
    })
}

/// Accepts the next connection of root or of this process's account.
async fn accept_own(listener: &UnixListener) -> io::Result<Connection> {
    loop {
        let stream = match unix_accept::accept(listener).await {
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            accepted => accepted?,
        };
        let uid = stream.peer_cred()?.uid();
        if uid == 0 || uid == nix::unistd::geteuid().as_raw() {
            return Ok(Connection { stream: Box::new(stream), ends: None });
        }
        tracing::warn!("rejected a connection of user {uid} to the page");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_listens_on_this_machine_alone() {
        for (address, expected) in [
            ("127.0.0.1:0", PageAddress::Localhost(0)),
            ("[::1]:80", PageAddress::Localhost(80)),
            ("localhost:80", PageAddress::Localhost(80)),
            ("127.1.2.3:80", PageAddress::Other(ListenAddress::Tcp(([127, 1, 2, 3], 80).into()))),
            ("unix:/run/x.sock", PageAddress::Other(ListenAddress::Unix("/run/x.sock".into()))),
        ] {
            assert_eq!(address.parse::<PageAddress>().ok(), Some(expected), "{address}");
        }
        for address in
            ["0.0.0.0:80", "[::]:80", "192.168.0.1:80", "localhost:x", "localhost", "unix:x.sock", "80", ""]
        {
            assert!(address.parse::<PageAddress>().is_err(), "{address}");
        }
    }
}
