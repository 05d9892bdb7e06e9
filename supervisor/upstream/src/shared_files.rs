//! The files of upstream servers that all hosts of a cluster share: the tokens of the service, what users have, and learned result types.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use lockhouse_base::files::{self, FileVersion};
use lockhouse_cluster::{ItemStore, SharedItem, Sharing};

const KIND: &str = "files";
/// The directory of the token files of the service, in that of the state.
pub(super) const TOKENS: &str = "tokens";
/// The directory of what users have, in that of the state.
pub(super) const USERS: &str = "users";
/// The directory of the learned result types, in that of files that can be created again.
pub(super) const SHAPES: &str = "shapes";
/// Maximum size of a file that is shared, in bytes.
/// Bound: hosts of a cluster.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The files of this host. An item is `tokens/FILE`, `users/USER/FILE` or `shapes/FILE`.
#[derive(Debug)]
pub struct SharedFiles {
    state: PathBuf,
    cache: PathBuf,
}

impl SharedFiles {
    /// Creates the store of the files in the directories of the state and of files that can be created again.
    pub fn new(state: PathBuf, cache: PathBuf) -> Self {
        Self { state, cache }
    }

    /// Returns the path of an item, whose name may come from another host.
    fn path(&self, item: &str) -> io::Result<PathBuf> {
        let parts: Vec<&str> = item.split('/').collect();
        match parts[..] {
            [TOKENS, file] if is_file(file) => Ok(self.state.join(item)),
            [USERS, user, file] if is_plain(user) && is_file(file) => Ok(self.state.join(item)),
            [SHAPES, file] if is_file(file) => Ok(self.cache.join(item)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "no shared file has this name")),
        }
    }
}

impl ItemStore for SharedFiles {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn list(&self) -> io::Result<HashMap<String, FileVersion>> {
        let mut paths = entries(&self.state.join(TOKENS))?;
        paths.extend(entries(&self.cache.join(SHAPES))?);
        for user in entries(&self.state.join(USERS))? {
            paths.extend(entries(&user)?);
        }
        let items = paths.into_iter().filter_map(|path| Some((item(&path)?, FileVersion::of(&path)?)));
        Ok(items.collect())
    }

    fn version(&self, item: &str) -> Option<FileVersion> {
        FileVersion::of(&self.path(item).ok()?)
    }

    fn read(&self, item: &str) -> io::Result<Option<Vec<u8>>> {
        files::read_bytes_bounded(&self.path(item)?, FILE_BYTES_MAX)
    }

    fn write(&self, item: &str, content: Option<&[u8]>) -> io::Result<()> {
        let path = self.path(item)?;
        let Some(content) = content else { return files::remove_if_present(&path) };
        files::create_private_directory(path.parent().unwrap_or(&self.state))?;
        files::replace_durably(&path, content)
    }
}

/// Returns a file as an item that all hosts share. `None` if it is none.
pub(super) fn shared_item(sharing: &Sharing, path: &Path) -> Option<SharedItem> {
    Some(sharing.item(KIND, item(path)?))
}

/// Returns the name of the item that a file is. `None` if it is not shared.
fn item(path: &Path) -> Option<String> {
    let mut parts = path.iter().rev().map(OsStr::to_str);
    let (file, parent, above) = (parts.next()??, parts.next()??, parts.next().flatten());
    match (parent, above) {
        _ if !is_file(file) => None,
        (user, Some(USERS)) if is_plain(user) => Some(format!("{USERS}/{user}/{file}")),
        (TOKENS | SHAPES, _) => Some(format!("{parent}/{file}")),
        _ => None,
    }
}

fn is_file(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(is_plain)
}

fn is_plain(name: &str) -> bool {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.bytes().all(is_permitted)
}

/// Returns the paths of the entries of a directory. There are none if there is no directory.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(directory) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_certain_files_are_items() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = SharedFiles::new(directory.path().join("state"), directory.path().join("cache"));
        for (name, is_item) in [
            ("tokens/a-0123.json", true),
            ("users/00ff/a-0123.json", true),
            ("shapes/a-0123.json", true),
            ("tokens/../policy.json", false),
            ("users/../tokens/a.json", false),
            ("users/00ff/a-0123.lock", false),
            ("users/00ff/.json", false),
            ("users//a.json", false),
            ("tokens.json", false),
            ("pins/a-0123.json", false),
            ("/tokens/a.json", false),
        ] {
            assert_eq!(store.write(name, Some(b"text")).is_ok(), is_item, "{name}");
            assert_eq!(store.version(name).is_some(), is_item, "{name}");
        }
        let mut listed: Vec<String> = store.list().expect("a list").into_keys().collect();
        listed.sort();
        assert_eq!(listed, ["shapes/a-0123.json", "tokens/a-0123.json", "users/00ff/a-0123.json"]);
        assert!(directory.path().join("cache/shapes/a-0123.json").exists());
        assert_eq!(store.read("tokens/a-0123.json").expect("read").as_deref(), Some(b"text".as_slice()));
        store.write("tokens/a-0123.json", None).expect("removed");
        assert_eq!(store.read("tokens/a-0123.json").expect("read"), None);
        store.write("tokens/a-0123.json", None).expect("it is not there");
    }
}
