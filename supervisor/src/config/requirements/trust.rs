//! Who could have written a file, or put another in its place.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::Uid;

use crate::config::ConfigError;

/// Written by the group, or by everybody.
const OTHERS_WRITE: u32 = 0o022;
/// In such a directory nobody replaces what is another's.
const STICKY: u32 = 0o1000;

/// Whether there is such a file, which nobody but one of `owners` can have written.
///
/// # Errors
/// When somebody else could, or when it cannot be seen whether it is there.
pub(super) fn is_there(path: &Path, owners: &[Uid]) -> Result<bool, ConfigError> {
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.reverse();
    for part in above {
        let metadata = match std::fs::symlink_metadata(part) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(ConfigError::Unreadable { path: path.to_owned(), source }),
        };
        let kept = metadata.is_dir() && metadata.mode() & STICKY != 0;
        let reason = if metadata.is_symlink() {
            "is a symbolic link: put the file itself there".to_owned()
        } else if !owners.contains(&Uid::from_raw(metadata.uid())) {
            format!("belongs to user {}: it must be root's (chown root)", metadata.uid())
        } else if metadata.mode() & OTHERS_WRITE != 0 && !kept {
            "can be written by others than its owner (chmod go-w)".to_owned()
        } else {
            continue;
        };
        let reason = format!("{} {reason}. Until then nothing is served", part.display());
        return Err(ConfigError::Unusable { path: path.to_owned(), reason });
    }
    Ok(true)
}
