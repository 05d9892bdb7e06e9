//! The version of a file, by which a process notices that the file was changed.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Distinguishes the contents that a path has had: each write and each replacement makes another version. Of a folder, only its own entries
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    /// When the content was written (mtime), in seconds and nanoseconds.
    written: (i64, i64),
    /// When the content or the status was changed (ctime), which no program can set.
    changed: (i64, i64),
}

impl FileVersion {
    /// Returns the version of a file, folder or symbolic link. `None` if there is none, or it cannot be found.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        std::fs::symlink_metadata(path).ok().map(|found| Self::from(&found))
    }

    /// Returns the version of the file or folder to which a path leads, also if it is a symbolic link. `None` if there is none, or it
    /// cannot be found.
    #[must_use]
    pub fn following_links(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|found| Self::from(&found))
    }

    /// Returns the version of a file, folder or symbolic link. `None` if there is none.
    ///
    /// # Errors
    /// It cannot be found out whether there is one.
    pub fn try_of(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::symlink_metadata(path) {
            Ok(found) => Ok(Some(Self::from(&found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns when this version was made, by the clock of this host.
    #[must_use]
    pub fn made_at(self) -> SystemTime {
        let (seconds, nanoseconds) = self.changed;
        let (seconds, nanoseconds) =
            (seconds.try_into().unwrap_or_default(), nanoseconds.try_into().unwrap_or_default());
        UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
    }
}

impl From<&Metadata> for FileVersion {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            bytes: found.len(),
            written: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}
