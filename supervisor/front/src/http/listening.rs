//! Sockets that wait for connections: our own, or those that systemd opened for us.

mod inherited;
mod unix;

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};

use super::address::Address;
use unix::{SocketFile, UnixSocketError};

pub(super) use inherited::{InheritError, inherited};

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

/// An address that cannot be listened at, and why.
#[derive(Debug, Error)]
#[error("cannot listen at {address}: {source}")]
pub struct BindError {
    address: Address,
    source: SocketError,
}

#[derive(Debug, Error)]
enum SocketError {
    #[error(transparent)]
    Tcp(#[from] io::Error),
    #[error(transparent)]
    Unix(#[from] UnixSocketError),
}

/// Opens the addresses.
pub(super) async fn bind(addresses: &[Address]) -> Result<Vec<Listening>, BindError> {
    let mut listening = Vec::new();
    for address in addresses {
        let opened = match address {
            Address::Tcp(tcp) => bind_tcp(*tcp).await.map_err(SocketError::from),
            Address::Unix(path) => bind_unix(path).map_err(SocketError::from),
        };
        listening.push(opened.map_err(|source| BindError { address: address.clone(), source })?);
    }
    Ok(listening)
}

async fn bind_tcp(address: SocketAddr) -> io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let address = Address::Tcp(listener.local_addr()?);
    Ok(Listening { socket: Socket::Tcp(listener), address, _file: None })
}

fn bind_unix(path: &Path) -> Result<Listening, UnixSocketError> {
    let (listener, file) = unix::bind(path)?;
    let address = Address::Unix(path.to_owned());
    Ok(Listening { socket: Socket::Unix(listener), address, _file: Some(file) })
}
