//! Checks that only trusted Unix users can have written or replaced a requirements file or policy.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::Uid;

use crate::config::ConfigError;

/// The mode bits that let the group or other users write a file.
const OTHERS_WRITE: u32 = 0o022;
/// The sticky bit of a directory's mode: users cannot replace files of other users in such a directory.
const STICKY: u32 = 0o1000;

/// Whether a file exists. Returns an error if users other than `owners` could have written the file or a directory on
/// its path, or if the path contains a symbolic link.
///
/// # Errors
/// [`ConfigError`] if the path is not trusted, or if the existence of the file cannot be determined.
pub(super) fn trusted_file_exists(path: &Path, owners: &[Uid]) -> Result<bool, ConfigError> {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    for part in above {
        let metadata = match std::fs::symlink_metadata(part) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(ConfigError::Unreadable { path: path.to_owned(), source }),
        };
        let is_sticky = metadata.is_dir() && metadata.mode() & STICKY != 0;
        let reason = if metadata.is_symlink() {
            "is a symbolic link: put the file itself there".to_owned()
        } else if !owners.contains(&Uid::from_raw(metadata.uid())) {
            format!("belongs to user {}: it must be root's (chown root)", metadata.uid())
        } else if metadata.mode() & OTHERS_WRITE != 0 && !is_sticky {
            "can be written by others than its owner (chmod go-w)".to_owned()
        } else {
            continue;
        };
        let reason = format!("{} {reason}. Until then nothing is served", part.display());
        return Err(ConfigError::Unusable { path: path.to_owned(), reason });
    }
    Ok(true)
}
