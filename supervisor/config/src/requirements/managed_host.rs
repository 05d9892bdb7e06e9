//! The marker of a host that an administrator manages: where it exists, requirements cannot be lifted by removing or
//! hiding their file.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use lockhouse_base::path_trust::is_in_user_namespace;
use nix::unistd::geteuid;

use super::watched_files::is_absent;

/// The marker: an empty file of root. It is not in `/var/lib/lockhouse`, because that directory belongs to the account of
/// the service, and other accounts cannot look into it.
pub(super) const MARKER: &str = "/var/lib/lockhouse-managed";
const MARKER_MODE: u32 = 0o644;

/// Whether requirements applied on this host before. The marker counts also if it cannot be examined.
pub(super) fn is_managed() -> bool {
    !std::fs::symlink_metadata(MARKER).is_err_and(|error| is_absent(&error))
}

/// Creates the marker, if this process may: only root of the host does. A service without write access to `/var/lib` does
/// not; `lockhouse doctor` as root does it for the host.
pub(super) fn mark_managed() {
    if !geteuid().is_root() || is_in_user_namespace() {
        return;
    }
    let created = OpenOptions::new().write(true).create_new(true).mode(MARKER_MODE).open(Path::new(MARKER));
    match created {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            tracing::debug!("{MARKER} cannot be created: {error}");
        }
        _ => {}
    }
}
