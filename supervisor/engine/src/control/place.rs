//! Where control sockets are.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use lockhouse_base::files;
use nix::unistd::geteuid;

const PREFIX: &str = "control-";
const SUFFIX: &str = ".sock";

/// Every directory in which a supervisor of this user may have one, in the order in which they are tried: an AI client may
/// start one with fewer variables than a terminal has.
pub fn everywhere() -> Vec<PathBuf> {
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

/// The socket's name in its directory.
pub(super) fn name(pid: u32) -> String {
    format!("{PREFIX}{pid}{SUFFIX}")
}

/// Makes the directory. One that others can enter, or that is another user's, is not used.
pub(super) fn make(directory: &Path) -> io::Result<()> {
    files::private_directory(directory)?;
    let metadata = std::fs::metadata(directory)?;
    if metadata.uid() != geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// The sockets that are there, with the process that each is named by.
pub fn sockets(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let socket = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let pid = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()?;
        Some((pid, entry.path()))
    };
    entries.filter_map(socket).collect()
}

/// Removes sockets that nobody listens at any more.
pub(super) fn clear(directory: &Path) {
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
    fn dead_sockets_are_cleared_away_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        drop(std::os::unix::net::UnixListener::bind(path("control-1.sock")).expect("a socket"));
        let _alive = std::os::unix::net::UnixListener::bind(path("control-2.sock")).expect("a socket");
        drop(std::os::unix::net::UnixListener::bind(path("other.sock")).expect("a socket"));
        std::fs::write(path("control-x.sock"), "").expect("a file");
        clear(directory.path());
        assert_eq!(sockets(directory.path()), [(2, path("control-2.sock"))]);
        assert!(path("other.sock").exists() && path("control-x.sock").exists());
    }

    #[test]
    fn the_directory_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("a mode");
        make(directory.path()).expect("made");
        let mode = std::fs::metadata(directory.path()).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
    }
}
