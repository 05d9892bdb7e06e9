//! Connections to the system's engine for a person. Where it is required, a person's processes have no engine of their own.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::StreamCommon as _;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use lockhouse_base::path_trust::{Strictness, TrustedOwners, UntrustedPath, check_path};
use lockhouse_config::SystemEngine;
use nix::unistd::{Uid, geteuid};

/// Why there is no connection to the system's engine, as a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub(super) enum SystemEngineError {
    #[error("the engine of this host cannot be reached at {path}: {source}. Ask the administrator to start it", path = .path.display())]
    Unreachable { path: PathBuf, source: io::Error },
    #[error("{path} is not used, because somebody else than root and the engine could change it: {source}", path = .path.display())]
    Untrusted { path: PathBuf, source: UntrustedPath },
    #[error("another process than the engine of this host listens at {}", .0.display())]
    OtherProcess(PathBuf),
}

/// Tells a person whose AI clients use the system's engine that the files of this person have no effect on it.
pub(super) fn explain_own_configuration() {
    // A command reports requirements that cannot be used itself.
    if let Ok(Some(_)) = SystemEngine::of_this_account() {
        eprintln!(
            "lockhouse: note: your AI clients use the engine of this host, which has a configuration and a policy of its own; yours \
             have no effect on it"
        );
    }
}

impl SystemEngineError {
    /// Whether the engine may be starting again: there is its socket, and nobody listens at it.
    pub(super) fn may_be_restart(&self) -> bool {
        matches!(self, Self::Unreachable { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused)
    }
}

/// Connects to a socket of the system's engine for a person. Its directory is made by root, and belongs to root or to the
/// account of the engine.
///
/// # Errors
/// The engine does not run, or another account than root could have made the socket.
pub(super) async fn connect(directory: &Path, socket: &str) -> Result<Stream, SystemEngineError> {
    let path = directory.join(socket);
    let unreachable = |source| SystemEngineError::Unreachable { path: path.clone(), source };
    let engine = std::fs::symlink_metadata(directory).map_err(unreachable)?.uid();
    let untrusted = |source| SystemEngineError::Untrusted { path: path.clone(), source };
    let parent = directory.parent().unwrap_or(directory);
    check_path(parent, &TrustedOwners::root(), Strictness::Strict).map_err(untrusted)?;
    let owners = TrustedOwners::root().with(Uid::from_raw(engine));
    check_path(directory, &owners, Strictness::Strict).map_err(untrusted)?;
    let name = path.as_path().to_fs_name::<GenericFilePath>().map_err(unreachable)?;
    let stream = Stream::connect(name).await.map_err(unreachable)?;
    // systemd opens the socket as root.
    let peer = stream.peer_creds().map_err(unreachable)?.euid();
    match peer.is_some_and(|peer| peer == 0 || peer == engine && peer != geteuid().as_raw()) {
        true => Ok(stream),
        false => Err(SystemEngineError::OtherProcess(path)),
    }
}
