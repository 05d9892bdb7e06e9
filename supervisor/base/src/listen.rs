//! The sockets at which HTTP servers of this product listen: the server for AI clients and the live page. This module has
//! their addresses, opens them, and accepts connections at them. Who may use a socket is the matter of its server.

mod address;
mod unix_socket;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};

pub use address::{InvalidListenAddress, ListenAddress};
pub use unix_socket::{SocketError, SocketFile};

/// A bidirectional byte stream: TCP, TLS or a Unix domain socket.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A listening socket and its listen address.
#[derive(Debug)]
pub struct Listener {
    pub socket: Socket,
    /// The listen address, with the port that the kernel chose if the configuration says port 0.
    pub address: ListenAddress,
    /// The file of the Unix domain socket, if this process created it. Dropping this value removes the file.
    pub file: Option<SocketFile>,
}

#[derive(Debug)]
pub enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Opens a socket. The file of a Unix domain socket has this mode, and replaces the socket of a process that has ended: the
/// caller has checked that no other user can replace it.
///
/// # Errors
/// If this process cannot listen at the address, for example because it is in use.
pub async fn bind(address: &ListenAddress, mode: u32) -> Result<Listener, SocketError> {
    match address {
        ListenAddress::Tcp(address) => {
            let listener = TcpListener::bind(address).await?;
            let address = ListenAddress::Tcp(listener.local_addr()?);
            Ok(Listener { socket: Socket::Tcp(listener), address, file: None })
        }
        ListenAddress::Unix(path) => {
            let (listener, file) = unix_socket::bind(path, mode)?;
            Ok(Listener { socket: Socket::Unix(listener), address: address.clone(), file: Some(file) })
        }
    }
}
