//! Recognizes Lockhouse's own files and those of the kernel when they are opened, whatever path leads to them.
//!
//! A folder is recognized by its device and inode, which stay the same when it is renamed or mounted elsewhere. A file
//! is recognized by its folder and its name, since a file that is replaced gets another inode. A hard link to such a
//! file is recognized by the file's current inode.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockhouse_base::own_places::OwnPlaces;
use nix::sys::stat::{FileStat, fstat};
use nix::sys::statfs::{FsType, PROC_SUPER_MAGIC, SYSFS_MAGIC, fstatfs};

use super::file_error::FileError;

/// File systems whose files are not data: the kernel generates them, and some contain secrets of processes.
const KERNEL_FILE_SYSTEMS: [FsType; 2] = [PROC_SUPER_MAGIC, SYSFS_MAGIC];
/// Maximum number of files and folders of Lockhouse that are compared with a file that has several names.
/// Bound: files of the host.
const ENTRIES_MAX: usize = 100_000;
/// Maximum number of symbolic links in a path, as in Linux.
const LINKS_MAX: usize = 40;
/// What follows the name of a file in the names of its copies, and in those of its drafts after a dot.
const OF_COPIES: &str = ".lockhouse-backup-";
const OF_DRAFTS: &str = ".";

/// The device and the inode of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity(u64, u64);

impl Identity {
    fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|found| Self(found.dev(), found.ino()))
    }

    fn of_status(status: &FileStat) -> Self {
        Self(status.st_dev, status.st_ino)
    }
}

/// The places that no program may use, as they are on disk at this moment.
#[derive(Default)]
pub(crate) struct ReservedPlaces {
    own: Arc<OwnPlaces>,
    /// Folders, and the programs among the code.
    folders: HashSet<Identity>,
    files: HashSet<Identity>,
    /// The names in each folder that contains a place.
    names: HashMap<Identity, Vec<OsString>>,
    /// The files with several names in Lockhouse's own folders; `None` if there are too many files.
    linked: OnceCell<Option<HashSet<Identity>>>,
}

impl ReservedPlaces {
    /// Looks the places up. Blocks.
    pub(crate) fn look_up(own: Arc<OwnPlaces>) -> Self {
        let mut reserved = Self { own: own.clone(), ..Self::default() };
        let mut parents: HashMap<&Path, Option<Identity>> = HashMap::new();
        for path in own.paths() {
            if let Some(parent) = path.parent() {
                let parent = *parents.entry(parent).or_insert_with(|| Identity::of(parent));
                reserved.add_name(parent, path);
            }
            // A link is reserved, and so is what it leads to, which need not exist.
            let mut link = path.to_owned();
            for _ in 0..LINKS_MAX {
                let Ok(target) = std::fs::read_link(&link) else { break };
                link = link.parent().unwrap_or(Path::new("/")).join(target);
                reserved.add_name(link.parent().and_then(Identity::of), &link);
            }
            let is_file = own.files.contains(path) || own.server_programs.contains(path);
            if is_file { &mut reserved.files } else { &mut reserved.folders }.extend(Identity::of(path));
        }
        reserved
    }

    fn add_name(&mut self, parent: Option<Identity>, path: &Path) {
        if let Some((parent, name)) = parent.zip(path.file_name()) {
            self.names.entry(parent).or_default().push(name.to_owned());
        }
    }

    /// # Errors
    /// [`FileError::Reserved`] if the open folder is reserved with everything below it.
    pub(super) fn check_folder(&self, folder: impl AsFd) -> Result<(), FileError> {
        let is_own = self.folders.contains(&Identity::of_status(&fstat(folder.as_fd())?));
        let is_reserved = is_own || KERNEL_FILE_SYSTEMS.contains(&fstatfs(folder)?.filesystem_type());
        if is_reserved { Err(FileError::Reserved) } else { Ok(()) }
    }

    /// # Errors
    /// [`FileError::Reserved`] if an entry of the open folder is reserved. `status` is that of the entry.
    pub(super) fn check_entry(
        &self,
        folder: impl AsFd,
        name: &OsStr,
        status: &FileStat,
    ) -> Result<(), FileError> {
        if self.folders.contains(&Identity::of_status(status)) {
            return Err(FileError::Reserved);
        }
        self.check_name(folder, name).and_then(|()| self.check_file(status))
    }

    /// # Errors
    /// [`FileError::Reserved`] if the name in the open folder is one of a reserved file or folder, or of its copies and
    /// drafts.
    pub(super) fn check_name(&self, folder: impl AsFd, name: &OsStr) -> Result<(), FileError> {
        let Some(names) = self.names.get(&Identity::of_status(&fstat(folder)?)) else { return Ok(()) };
        let name = name.as_encoded_bytes();
        let is_reserved = names.iter().any(|reserved| {
            let after = |name: &[u8], more: &str| {
                let rest = name.strip_prefix(reserved.as_encoded_bytes());
                rest.is_some_and(|rest| rest.starts_with(more.as_bytes()))
            };
            name == reserved.as_encoded_bytes()
                || after(name, OF_COPIES)
                || name.strip_prefix(b".").is_some_and(|name| after(name, OF_DRAFTS))
        });
        if is_reserved { Err(FileError::Reserved) } else { Ok(()) }
    }

    /// # Errors
    /// [`FileError::Reserved`] if the file is one of Lockhouse's own files under another name, or if it has several names
    /// and there are too many own files to find out.
    pub(super) fn check_file(&self, status: &FileStat) -> Result<(), FileError> {
        let identity = Identity::of_status(status);
        let is_own = self.files.contains(&identity)
            || status.st_nlink > 1
                && self
                    .linked
                    .get_or_init(|| linked_files(&self.own))
                    .as_ref()
                    .is_none_or(|linked| linked.contains(&identity));
        if is_own { Err(FileError::Reserved) } else { Ok(()) }
    }
}

/// Returns the files with several names in Lockhouse's own folders, without those with code. `None` if there are too many
/// files.
fn linked_files(own: &OwnPlaces) -> Option<HashSet<Identity>> {
    let code: HashSet<Identity> = own.code.iter().filter_map(|path| Identity::of(path)).collect();
    let mut linked = HashSet::new();
    let mut waiting: Vec<PathBuf> =
        own.folders.iter().filter_map(|folder| std::fs::canonicalize(folder).ok()).collect();
    let mut count = 0;
    while let Some(path) = waiting.pop() {
        count += 1;
        if count + waiting.len() > ENTRIES_MAX {
            return None;
        }
        let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
        let identity = Identity(found.dev(), found.ino());
        if found.is_file() && found.nlink() > 1 {
            linked.insert(identity);
        } else if found.is_dir() && !code.contains(&identity) {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(entries.take(ENTRIES_MAX).map(|entry| entry.path()));
        }
    }
    Some(linked)
}

#[cfg(test)]
mod tests;
