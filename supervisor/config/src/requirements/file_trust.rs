//! Checks that only trusted Unix users can have written or replaced a requirements file or policy.

use std::path::Path;

use lockhouse_base::path_trust::{Fault, Strictness, TrustedOwners, UntrustedPath, check_path};

use crate::ConfigError;

/// Whether a file exists. Returns an error if users other than `owners` could have written the file or a directory on
/// its path, or if the path contains a symbolic link.
///
/// # Errors
/// [`ConfigError`] if the path is not trusted, or if the existence of the file cannot be determined.
pub(super) fn trusted_file_exists(path: &Path, owners: &TrustedOwners) -> Result<bool, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    let Err(UntrustedPath { part, fault }) = check_path(path, owners, Strictness::Strict) else {
        return path.try_exists().map_err(unreadable);
    };
    let part = part.display();
    let reason = match fault {
        Fault::Unknown(source) => return Err(unreadable(source)),
        Fault::Link => format!("{part} {fault}: put the file itself there"),
        Fault::Owner(_) => format!("{part} {fault}: it must be root's (chown root {part})"),
        Fault::Writable { .. } => format!("{part} {fault}: run chmod go-w {part}"),
        Fault::Listed { ref entry, .. } => format!("{part} {fault}: run setfacl -x {entry} {part}"),
    };
    let reason = format!("{reason}. Until then nothing is served");
    Err(ConfigError::Unusable { path: path.to_owned(), reason })
}
