//! Listening sockets of the HTTP server: opened by this process, or passed by systemd.

mod socket_activation;
mod unix_socket;

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};

use super::listen_address::ListenAddress;
use unix_socket::UnixSocketError;

pub use socket_activation::SocketActivationError;
pub(super) use socket_activation::{
    PASSED_SOCKETS_VARIABLE, adopt, close_on_exec, inherited_duplicates, inherited_listeners,
    inherited_unix_listeners, passed_on,
};
pub(super) use unix_socket::SocketFile;

/// A listening socket and its listen address.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) socket: Socket,
    /// The listen address, with the port that the kernel chose if the configuration says port 0.
    pub(super) address: ListenAddress,
    /// The file of the Unix domain socket, if this process created it. Dropping this value removes the file.
    pub(super) file: Option<SocketFile>,
}

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The error if the server cannot listen at an address.
#[derive(Debug, Error)]
#[error("cannot listen at {address}: {source}")]
pub struct BindError {
    address: ListenAddress,
    source: Box<SocketError>,
}

#[derive(Debug, Error)]
enum SocketError {
    #[error(transparent)]
    Tcp(#[from] io::Error),
    #[error(transparent)]
    Unix(#[from] UnixSocketError),
    #[error("the process of the engine does not pass its connections on")]
    NotPassed,
}

impl BindError {
    /// The error if the engine's process should accept the connections of a Unix domain socket, and does not.
    pub(super) fn not_passed(address: &ListenAddress) -> Self {
        Self { address: address.clone(), source: Box::new(SocketError::NotPassed) }
    }
}

/// Opens a listening socket at each address.
pub(super) async fn bind(addresses: &[ListenAddress]) -> Result<Vec<Listener>, BindError> {
    let mut listeners = Vec::new();
    for address in addresses {
        listeners.push(bind_at(address).await?);
    }
    Ok(listeners)
}

pub(super) async fn bind_at(address: &ListenAddress) -> Result<Listener, BindError> {
    let opened = match address {
        ListenAddress::Tcp(tcp) => bind_tcp(*tcp).await.map_err(SocketError::from),
        ListenAddress::Unix(path) => bind_unix(path).map_err(SocketError::from),
    };
    opened.map_err(|source| BindError { address: address.clone(), source: Box::new(source) })
}

async fn bind_tcp(address: SocketAddr) -> io::Result<Listener> {
    let listener = TcpListener::bind(address).await?;
    let address = ListenAddress::Tcp(listener.local_addr()?);
    Ok(Listener { socket: Socket::Tcp(listener), address, file: None })
}

fn bind_unix(path: &Path) -> Result<Listener, UnixSocketError> {
    let (listener, file) = unix_socket::bind(path)?;
    let address = ListenAddress::Unix(path.to_owned());
    Ok(Listener { socket: Socket::Unix(listener), address, file: Some(file) })
}
