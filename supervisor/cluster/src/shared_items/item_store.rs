//! Where a host has its copies of items.

use std::collections::HashMap;
use std::fmt::Debug;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The copies of the items of one kind, in the files of this host. Other processes may change them at any time. An item has a name, which
/// comes from other hosts too: a store checks it.
pub trait ItemStore: Debug + Send + Sync {
    /// The kind of the items: a word of small letters.
    fn kind(&self) -> &'static str;

    /// Returns the names of all items and the versions of their copies.
    ///
    /// # Errors
    /// They cannot be listed.
    fn list(&self) -> io::Result<HashMap<String, CopyVersion>>;

    /// Returns the version of a copy. `None` if there is none.
    fn version(&self, item: &str) -> Option<CopyVersion>;

    /// Returns the content of an item. `None` if there is no copy.
    ///
    /// # Errors
    /// The copy cannot be read.
    fn read(&self, item: &str) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the copy of an item, or removes it if `content` is `None`.
    ///
    /// # Errors
    /// The name or the content is not valid, or the copy cannot be written.
    fn write(&self, item: &str, content: Option<&[u8]>) -> io::Result<()>;
}

/// Distinguishes the contents that a copy has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyVersion {
    inode: u64,
    changed: (i64, i64),
}

impl CopyVersion {
    /// Returns the version of a file or folder, which is replaced as a whole. `None` if there is none.
    pub fn of(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|metadata| Self::from(&metadata))
    }

    /// Returns when the copy was written, by the clock of this host.
    pub(super) fn written(self) -> SystemTime {
        let (seconds, nanoseconds) = self.changed;
        let (seconds, nanoseconds) =
            (seconds.try_into().unwrap_or_default(), nanoseconds.try_into().unwrap_or_default());
        UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
    }
}

impl From<&Metadata> for CopyVersion {
    fn from(metadata: &Metadata) -> Self {
        Self { inode: metadata.ino(), changed: (metadata.ctime(), metadata.ctime_nsec()) }
    }
}
