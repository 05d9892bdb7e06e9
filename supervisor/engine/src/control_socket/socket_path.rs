//! Directories and file names of control sockets, through which operators' commands reach a supervisor.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use nix::unistd::{Uid, User, geteuid};

/// The directory of the packaged service's socket for people of other accounts.
const OPERATORS_DIRECTORY: &str = "/run/lockhouse/operators";
/// The variable that names another directory.
const OPERATORS_VARIABLE: &str = "LOCKHOUSE_OPERATORS";
const PREFIX: &str = "control-";
const SUFFIX: &str = ".sock";

/// Returns all directories that may contain control sockets of this user, in the order in which they are tried. A
/// command must search all of them: an AI client may start a supervisor with fewer environment variables than a
/// terminal has, and the supervisor then uses a later directory.
pub fn candidate_directories() -> Vec<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_session = PathBuf::from(format!("/run/user/{}", geteuid())).join("lockhouse");
    let directories = [
        absolute("RUNTIME_DIRECTORY"),
        absolute("XDG_RUNTIME_DIR").map(|directory| directory.join("lockhouse")),
        lockhouse_base::directories::state().map(|directory| directory.join("run")),
        Some(of_session),
    ];
    let mut known = Vec::new();
    for directory in directories.into_iter().flatten() {
        if !known.contains(&directory) {
            known.push(directory);
        }
    }
    known
}

/// Returns the directories in which another account's control sockets are, unless that account names others.
pub fn usual_directories(account: Uid) -> Vec<PathBuf> {
    let of_session = PathBuf::from(format!("/run/user/{account}")).join("lockhouse");
    let home = User::from_uid(account).ok().flatten().map(|user| user.dir);
    let of_state = home.map(|home| home.join(".local/state/lockhouse/run"));
    [Some(of_session), of_state].into_iter().flatten().collect()
}

/// Returns the file name of the control socket of the process `pid`.
pub(super) fn socket_name(pid: u32) -> String {
    format!("{PREFIX}{pid}{SUFFIX}")
}

/// Creates a directory for sockets of this user with mode 0700. Fails if the directory belongs to another user.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    files::create_private_directory(directory)?;
    let metadata = std::fs::metadata(directory)?;
    if metadata.uid() != geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the directory belongs to another user"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Creates a directory for sockets that every account may use, with mode 0755. Fails if it belongs to another account.
pub(super) fn create_shared_directory(directory: &Path) -> io::Result<()> {
    if !directory.exists() {
        std::fs::create_dir(directory)?;
    }
    if std::fs::symlink_metadata(directory)?.uid() != geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the directory belongs to another account"));
    }
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o755))
}

/// Returns the directory of the service's socket for people of other accounts.
pub fn operators_directory() -> PathBuf {
    std::env::var_os(OPERATORS_VARIABLE).map_or_else(|| PathBuf::from(OPERATORS_DIRECTORY), PathBuf::from)
}

/// Returns the control sockets in a directory, each with the process ID from its file name.
pub fn sockets(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let socket = |entry: std::fs::DirEntry| {
        let path = entry.path();
        Some((process_of(&path)?, path))
    };
    entries.filter_map(socket).collect()
}

/// Returns the process ID in the file name of a control socket. `None` if it is no such name.
pub fn process_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

/// Removes the control sockets in a directory on which no process listens.
pub(super) fn remove_stale_sockets(directory: &Path) {
    for (_, path) in sockets(directory) {
        let connected = UnixStream::connect(&path);
        if connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stale_sockets_are_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        drop(std::os::unix::net::UnixListener::bind(path("control-1.sock")).expect("a socket"));
        let _alive = std::os::unix::net::UnixListener::bind(path("control-2.sock")).expect("a socket");
        drop(std::os::unix::net::UnixListener::bind(path("other.sock")).expect("a socket"));
        std::fs::write(path("control-x.sock"), "").expect("a file");
        remove_stale_sockets(directory.path());
        assert_eq!(sockets(directory.path()), [(2, path("control-2.sock"))]);
        assert!(path("other.sock").exists() && path("control-x.sock").exists());
    }

    #[test]
    fn the_directory_is_private() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
        create_directory(directory.path()).expect("made");
        let mode = std::fs::metadata(directory.path()).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
    }
}
