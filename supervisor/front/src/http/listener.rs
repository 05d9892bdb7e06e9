//! Listening sockets of the HTTP server: opened by this process, or passed by systemd.

mod socket_activation;

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_base::listen::{self, ListenAddress, Listener, SocketError};
use lockhouse_base::path_trust::{Strictness, TrustedOwners, UntrustedPath, check_path};
use thiserror::Error;

pub use socket_activation::SocketActivationError;
pub(super) use socket_activation::{
    adopt, inherited_duplicates, inherited_listeners, inherited_unix_listeners,
};

/// Mode of the files of Unix domain sockets: owner and group may connect, if the directory's permissions allow it.
const SOCKET_MODE: u32 = 0o660;

/// The error if the server cannot listen at an address.
#[derive(Debug, Error)]
#[error("cannot listen at {address}: {source}")]
pub struct BindError {
    address: ListenAddress,
    source: Box<ListenFault>,
}

#[derive(Debug, Error)]
enum ListenFault {
    #[error("{directory}: {source}")]
    Directory { directory: PathBuf, source: io::Error },
    #[error(
        "users other than its owner may write to {directory} and could replace the socket: use a directory of its own, such as $XDG_RUNTIME_DIR/lockhouse"
    )]
    OpenDirectory { directory: PathBuf },
    #[error("{directory} belongs to user {owner}, who could replace the socket")]
    ForeignDirectory { directory: PathBuf, owner: u32 },
    #[error("{directory} cannot be used: {source}, who could replace the directory of the socket")]
    Way { directory: PathBuf, source: UntrustedPath },
    #[error(transparent)]
    Socket(#[from] SocketError),
}

impl BindError {
    pub(super) fn system(address: &ListenAddress, error: io::Error) -> Self {
        Self { address: address.clone(), source: Box::new(ListenFault::Socket(error.into())) }
    }
}

pub(super) async fn bind_at(address: &ListenAddress) -> Result<Listener, BindError> {
    let failed = |source| BindError { address: address.clone(), source: Box::new(source) };
    open(address).await.map_err(failed)
}

async fn open(address: &ListenAddress) -> Result<Listener, ListenFault> {
    if let ListenAddress::Unix(path) = address {
        check_directory(path.parent().unwrap_or(Path::new("/")))?;
    }
    Ok(listen::bind(address, SOCKET_MODE).await?)
}

/// Checks that no other user can write to the directory of the socket and replace the socket.
fn check_directory(directory: &Path) -> Result<(), ListenFault> {
    let shown = directory.to_owned();
    let found = match std::fs::metadata(directory) {
        Ok(found) => found,
        Err(source) => return Err(ListenFault::Directory { directory: shown, source }),
    };
    if found.mode() & 0o022 != 0 {
        return Err(ListenFault::OpenDirectory { directory: shown });
    }
    let us = nix::unistd::geteuid().as_raw();
    match found.uid() {
        owner if owner == 0 || owner == us => {
            let absolute = std::path::absolute(directory).map_err(SocketError::from)?;
            let checked = check_path(&absolute, &TrustedOwners::root_and_own(), Strictness::Usual);
            checked.map_err(|source| ListenFault::Way { directory: shown, source })
        }
        owner => Err(ListenFault::ForeignDirectory { directory: shown, owner }),
    }
}
