//! Checks the directories of the Unix domain sockets at which the server listens.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lockhouse_base::path_trust::{Strictness, TrustedOwners, UntrustedPath, check_path};
use thiserror::Error;

/// Why no Unix domain socket is created in a directory.
#[derive(Debug, Error)]
pub(super) enum SocketDirectoryError {
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
    System(#[from] io::Error),
}

/// Checks that no other user can write to the directory of the socket and replace the socket.
pub(super) fn check_directory(directory: &Path) -> Result<(), SocketDirectoryError> {
    let shown = directory.to_owned();
    let found = match std::fs::metadata(directory) {
        Ok(found) => found,
        Err(source) => return Err(SocketDirectoryError::Directory { directory: shown, source }),
    };
    if found.mode() & 0o022 != 0 {
        return Err(SocketDirectoryError::OpenDirectory { directory: shown });
    }
    let us = nix::unistd::geteuid().as_raw();
    match found.uid() {
        owner if owner == 0 || owner == us => {
            let absolute = std::path::absolute(directory)?;
            let checked = check_path(&absolute, &TrustedOwners::root_and_own(), Strictness::Usual);
            checked.map_err(|source| SocketDirectoryError::Way { directory: shown, source })
        }
        owner => Err(SocketDirectoryError::ForeignDirectory { directory: shown, owner }),
    }
}
