//! Where a host has its copies of items.

use std::collections::HashMap;
use std::fmt::Debug;
use std::io;

use lockhouse_base::files::FileVersion;

/// The copies of the items of one kind, in the files of this host. Other processes may change them at any time. An item has a name, which
/// comes from other hosts too: a store checks it.
pub trait ItemStore: Debug + Send + Sync {
    /// The kind of the items: a word of small letters.
    fn kind(&self) -> &'static str;

    /// Returns the names of all items and the versions of their copies.
    ///
    /// # Errors
    /// They cannot be listed.
    fn list(&self) -> io::Result<HashMap<String, FileVersion>>;

    /// Returns the version of a copy. `None` if there is none.
    fn version(&self, item: &str) -> Option<FileVersion>;

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
