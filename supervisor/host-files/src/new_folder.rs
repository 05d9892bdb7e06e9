//! Makes folders of this machine.

use std::path::Path;

use nix::errno::Errno;
use nix::sys::stat::{Mode, mkdirat};

use super::file_error::FileError;
use super::file_system::{open_parent, stat};
use super::reserved_places::ReservedPlaces;

/// Makes the folder at a path without links, in an existing folder. Returns false if it is there already. Blocks.
pub(super) fn make_folder(path: &Path, reserved: &ReservedPlaces) -> Result<bool, FileError> {
    let (parent, name) = open_parent(path, reserved).map_err(FileError::of_folder)?;
    // The umask of the process restricts the mode.
    match mkdirat(&parent, name, Mode::from_bits_truncate(0o777)) {
        Ok(()) => Ok(true),
        Err(Errno::EEXIST) if stat(path, reserved)?.is_folder => Ok(false),
        Err(Errno::EEXIST) => Err(FileError::Exists),
        Err(errno) => Err(errno.into()),
    }
}
