//! The sockets of engines that AI clients share: their paths, connections to them, and what an engine reports when it
//! starts.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::StreamCommon as _;
use interprocess::local_socket::traits::tokio::Stream as _;
use interprocess::local_socket::{GenericFilePath, ToFsName};
use lockhouse_base::directories;
use nix::unistd::geteuid;

/// What the process that starts an engine reads from the engine's standard output: the engine accepts clients.
pub(super) const READY: &str = "ready";
/// The same, if another engine with the same setup is starting or running.
pub(super) const TAKEN: &str = "taken";

/// The sockets of the system's engine for a person: for AI clients, for operators, and for the launcher of servers in the
/// person's session.
pub(super) const FRONT_SOCKET: &str = "front.sock";
pub(super) const CONTROL_SOCKET: &str = "control.sock";
pub(super) const LAUNCHER_SOCKET: &str = "launcher.sock";

const PREFIX: &str = "engine-";
const LOCK_SUFFIX: &str = ".lock";

/// Returns the directory of the sockets and their locks. It depends on the state directory alone, which is part of every
/// setup: clients with equal setups look in the same place, whatever else their environments contain.
pub(super) fn directory() -> Option<PathBuf> {
    Some(directories::state()?.join("run"))
}

/// Returns the path of the socket of the engine with this setup.
pub(super) fn socket_path(directory: &Path, setup: &str) -> PathBuf {
    directory.join(format!("{PREFIX}{setup}.sock"))
}

/// Returns the path of the file that is locked as long as a process serves this setup.
pub(super) fn lock_path(directory: &Path, setup: &str) -> PathBuf {
    directory.join(format!("{PREFIX}{setup}{LOCK_SUFFIX}"))
}

/// Returns the setups for which there is a lock file.
pub(super) fn locked_setups(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let setup = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        Some(name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(LOCK_SUFFIX)?.to_owned())
    };
    entries.filter_map(setup).collect()
}

/// Returns the path of the socket that systemd holds for a shared engine (`lockhouse-engine.socket`).
pub(super) fn activated_socket_path() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = runtime.unwrap_or_else(|| PathBuf::from(format!("/run/user/{}", geteuid())));
    runtime.join("lockhouse/engine.sock")
}

/// Connects to the socket of an engine.
///
/// # Errors
/// Nobody listens there, or the process that does belongs to another user.
pub(super) async fn connect(path: &Path) -> Result<Stream> {
    let stream = Stream::connect(path.to_fs_name::<GenericFilePath>()?).await?;
    if stream.peer_creds()?.euid() == Some(geteuid().as_raw()) {
        Ok(stream)
    } else {
        Err(Error::new(ErrorKind::PermissionDenied, "another user listens at the socket"))
    }
}
