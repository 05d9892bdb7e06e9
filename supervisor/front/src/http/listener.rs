//! Listening sockets of the HTTP server: opened by this process, or passed by systemd.

mod socket_activation;
mod socket_directory;

use std::io;
use std::path::Path;

use lockhouse_base::listen::{ListenAddress, Listener, UnixSocketError, bind_tcp, bind_unix};
use thiserror::Error;

use socket_directory::{SocketDirectoryError, check_directory};

pub use socket_activation::SocketActivationError;
pub(super) use socket_activation::{
    PASSED_SOCKETS_VARIABLE, adopt, close_on_exec, inherited_duplicates, inherited_listeners,
    inherited_unix_listeners, passed_on,
};

/// Mode of the files of Unix domain sockets: owner and group may connect, if the directory's permissions allow it.
const SOCKET_MODE: u32 = 0o660;

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
    Directory(#[from] SocketDirectoryError),
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
        ListenAddress::Unix(path) => open_unix(path),
    };
    opened.map_err(|source| BindError { address: address.clone(), source: Box::new(source) })
}

fn open_unix(path: &Path) -> Result<Listener, SocketError> {
    check_directory(path.parent().unwrap_or(Path::new("/")))?;
    Ok(bind_unix(path, SOCKET_MODE)?)
}
