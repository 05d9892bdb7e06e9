//! Opens, lists and writes files of this machine by paths without symbolic links. Each component of a path is opened
//! in the folder before it, and no component may be a link. So a process that renames folders or creates links at the
//! same time cannot lead the supervisor to another place.
//!
//! All functions block, and are called on blocking threads.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};

use super::file_error::FileError;
use super::reserved_places::ReservedPlaces;

/// The kind, size and time of a file or folder, for programs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileFacts {
    pub(crate) is_folder: bool,
    /// Size in bytes; 0 for a folder.
    pub(crate) bytes: u64,
    /// When the content was last changed, in seconds since 1970.
    pub(crate) modified: f64,
}

/// The maximum number of symbolic links in a folder that are followed for each entry that may be shown: each costs a look at
/// its target.
const LINKS_PER_ENTRY: usize = 10;

/// An entry of a folder, for programs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FolderEntry {
    pub(crate) name: String,
    /// What is known about the entry; of a symbolic link, about its target.
    pub(crate) facts: FileFacts,
    /// The path without links to which a symbolic link leads.
    pub(crate) target: Option<String>,
}

/// The kinds of files that programs may know of.
pub(super) fn facts(status: &FileStat) -> Option<FileFacts> {
    let is_folder = match SFlag::from_bits_truncate(status.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFREG => false,
        SFlag::S_IFDIR => true,
        _ => return None,
    };
    let bytes = if is_folder { 0 } else { u64::try_from(status.st_size).unwrap_or(0) };
    Some(FileFacts { is_folder, bytes, modified: status.st_mtime as f64 + status.st_mtime_nsec as f64 / 1e9 })
}

/// Opens the folder that contains `path`, and returns it with the last component. `path` is absolute and has no links.
pub(super) fn open_parent<'p>(
    path: &'p Path,
    reserved: &ReservedPlaces,
) -> Result<(OwnedFd, &'p OsStr), FileError> {
    let name = path.file_name().ok_or(FileError::IsFolder)?;
    let folder = open_folder(path.parent().unwrap_or(Path::new("/")), reserved)?;
    reserved.check_name(&folder, name)?;
    Ok((folder, name))
}

/// Opens a folder by an absolute path without links. Neither the folder nor one on the path may be reserved.
fn open_folder(path: &Path, reserved: &ReservedPlaces) -> Result<OwnedFd, FileError> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut folder = open("/", flags, Mode::empty())?;
    reserved.check_folder(&folder)?;
    for component in path.components() {
        match component {
            Component::RootDir => {}
            Component::Normal(name) => {
                folder = openat(&folder, name, flags, Mode::empty()).map_err(|errno| match errno {
                    // With O_DIRECTORY, a symbolic link is reported as what it is: not a folder.
                    Errno::ENOTDIR if is_link(&folder, name) => FileError::Changed,
                    errno => errno.into(),
                })?;
                reserved.check_folder(&folder)?;
            }
            _ => return Err(FileError::Changed),
        }
    }
    Ok(folder)
}

fn is_link(folder: &OwnedFd, name: &OsStr) -> bool {
    fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|status| is_link_status(&status))
}

fn is_link_status(status: &FileStat) -> bool {
    status.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits()
}

/// Whether the file or folder at a path without links is reserved. It need not exist.
pub(crate) fn is_reserved(path: &Path, reserved: &ReservedPlaces) -> bool {
    matches!(stat(path, reserved), Err(FileError::Reserved))
}

/// Opens a regular file of at most `most` bytes, and returns it with its size. Does not wait for a pipe, and opens no
/// device.
pub(crate) fn open_file(path: &Path, most: u64, reserved: &ReservedPlaces) -> Result<(File, u64), FileError> {
    let (parent, name) = open_parent(path, reserved)?;
    // Opening a device can have effects, so the kind is checked before the file is opened, and again afterwards.
    regular_size(&fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?)?;
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = openat(&parent, name, flags, Mode::empty())?;
    let status = fstat(&file)?;
    let bytes = regular_size(&status)?;
    reserved.check_file(&status)?;
    match bytes > most {
        true => Err(FileError::TooLarge { bytes, most }),
        false => Ok((File::from(file), bytes)),
    }
}

fn regular_size(status: &FileStat) -> Result<u64, FileError> {
    match facts(status) {
        Some(facts) if facts.is_folder => Err(FileError::IsFolder),
        Some(facts) => Ok(facts.bytes),
        None => Err(FileError::NotRegular),
    }
}

/// Returns what is known about the file or folder at a path.
pub(crate) fn stat(path: &Path, reserved: &ReservedPlaces) -> Result<FileFacts, FileError> {
    let status = match path.parent() {
        None => fstat(open_folder(path, reserved)?)?,
        Some(_) => {
            let (parent, name) = open_parent(path, reserved)?;
            fstatat(&parent, name, AtFlags::AT_SYMLINK_NOFOLLOW)?
        }
    };
    let facts = facts(&status).ok_or(FileError::NotRegular)?;
    match facts.is_folder {
        true => drop(open_folder(path, reserved)?),
        false => reserved.check_file(&status)?,
    }
    Ok(facts)
}

/// Returns the entries of a folder for which `is_shown` returns true for the name and its facts, sorted by name, and
/// whether entries were left out because there are more than `most`, or ten times as many links. `follow` returns the target of the symbolic link of
/// a name and the facts of the target; `None` if programs may not know it, and the link is omitted. Devices, reserved
/// places and names that are not UTF-8 are omitted.
pub(crate) fn list(
    path: &Path,
    most: usize,
    reserved: &ReservedPlaces,
    is_shown: impl Fn(&str, &FileFacts) -> bool,
    follow: impl Fn(&str) -> Option<(String, FileFacts)>,
) -> Result<(Vec<FolderEntry>, bool), FileError> {
    let folder = open_folder(path, reserved)?;
    // The magic link of the open folder leads to this folder, whatever happens to its path meanwhile.
    let entries = std::fs::read_dir(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    let mut shown = Vec::new();
    let (mut is_cut, mut links) = (false, 0);
    for entry in entries {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Ok(status) = fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) else { continue };
        let (facts, target) = if is_link_status(&status) {
            links += 1;
            if links > LINKS_PER_ENTRY * most {
                is_cut = true;
                break;
            }
            let Some((target, facts)) = follow(name) else { continue };
            (facts, Some(target))
        } else {
            let Some(facts) = facts(&status).filter(|facts| is_shown(name, facts)) else { continue };
            (facts, None)
        };
        if reserved.check_entry(&folder, name.as_ref(), &status).is_err() {
            continue;
        }
        is_cut = shown.len() == most;
        if is_cut {
            break;
        }
        shown.push(FolderEntry { name: name.to_owned(), facts, target });
    }
    shown.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((shown, is_cut))
}

#[cfg(test)]
mod tests;
