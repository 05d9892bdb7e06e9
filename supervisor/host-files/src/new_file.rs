//! Writes files of this machine: a new file takes the name at once, with its whole content.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, fstatat};
use nix::unistd::{AccessFlags, Gid, Uid, UnlinkatFlags, faccessat, fchown, unlinkat};

use super::file_error::FileError;
use super::file_system::{facts, open_parent};
use super::reserved_places::ReservedPlaces;

/// The end of the last year that a time can be written with, in seconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799;

/// A file that is being written. Its content becomes visible under its name at the end, all at once. If this value is
/// dropped before, nothing remains.
#[derive(Debug)]
pub(crate) struct NewFile {
    folder: OwnedFd,
    name: OsString,
    temporary: String,
    file: File,
    /// The file that the new one replaces, as [`describe_existing`] describes it.
    replaces: Option<String>,
    is_finished: bool,
}

/// Describes the regular file at a path without links: another text stands for another file, or for another content.
/// `None` if there is no such file. Blocks.
pub(super) fn describe_existing(path: &Path, reserved: &ReservedPlaces) -> Option<String> {
    let (folder, name) = open_parent(path, reserved).ok()?;
    describe(&existing(&folder, name).ok()??)
}

fn existing(folder: &OwnedFd, name: &OsStr) -> Result<Option<FileStat>, FileError> {
    match fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(status) => Ok(Some(status)),
        Err(Errno::ENOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn describe(status: &FileStat) -> Option<String> {
    let bytes = facts(status).filter(|facts| !facts.is_folder)?.bytes;
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    let (seconds, nanoseconds) = (part(status.st_mtime), part(status.st_mtime_nsec));
    let since =
        Duration::from_secs(seconds.min(LAST_SECOND)) + Duration::from_nanos(nanoseconds % 1_000_000_000);
    let changed = humantime::format_rfc3339_nanos(SystemTime::UNIX_EPOCH + since);
    Some(format!("a file of {bytes} bytes, changed {changed}"))
}

/// Fails if a new file must not take the place of the one that was found: it is not the expected one, its mode or the
/// rights of the process forbid writing, or it has other names, under which the old content would stay.
fn require_replaceable(
    folder: &OwnedFd,
    name: &OsStr,
    found: Option<&FileStat>,
    expected: Option<&str>,
) -> Result<(), FileError> {
    let Some(old) = found else {
        return if expected.is_none() { Ok(()) } else { Err(FileError::Replaced) };
    };
    match facts(old) {
        None => return Err(FileError::NotRegular),
        Some(facts) if facts.is_folder => return Err(FileError::IsFolder),
        Some(_) if old.st_nlink > 1 => return Err(FileError::HardLinked),
        // Root may write to any file; a file that nobody may write to is not replaced by root either.
        Some(_) if old.st_mode & 0o222 == 0 => return Err(FileError::ReadOnly),
        Some(_) if describe(old).as_deref() != expected => return Err(FileError::Replaced),
        Some(_) => {}
    }
    let flags = AtFlags::AT_EACCESS | AtFlags::AT_SYMLINK_NOFOLLOW;
    Ok(faccessat(folder, name, AccessFlags::W_OK, flags)?)
}

impl NewFile {
    /// Begins to write the file at `path`, whose folder must exist. A regular file with this name is replaced at the
    /// end; the new one has its mode and its owner. `replaces` describes the file that is expected there, as in
    /// [`describe_existing`].
    pub(crate) fn create(
        path: &Path,
        replaces: Option<&str>,
        reserved: &ReservedPlaces,
    ) -> Result<Self, FileError> {
        let (folder, name) = open_parent(path, reserved).map_err(FileError::of_folder)?;
        let old = existing(&folder, name)?;
        old.iter().try_for_each(|old| reserved.check_file(old))?;
        require_replaceable(&folder, name, old.as_ref(), replaces)?;
        let temporary = format!(".lockhouse-{}", uuid::Uuid::now_v7().simple());
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // The umask of the process restricts the mode.
        let file = openat(&folder, temporary.as_str(), flags, Mode::from_bits_truncate(0o666))?;
        let (name, replaces) = (name.to_owned(), replaces.map(str::to_owned));
        let new = Self { folder, name, temporary, file: File::from(file), replaces, is_finished: false };
        if let Some(old) = old {
            new.take_owner_and_mode(&old)?;
        }
        Ok(new)
    }

    fn take_owner_and_mode(&self, old: &FileStat) -> Result<(), FileError> {
        let own = fstat(&self.file)?;
        let other = |own: u32, old: u32| (own != old).then_some(old);
        let (user, group) = (other(own.st_uid, old.st_uid), other(own.st_gid, old.st_gid));
        if user.is_some() || group.is_some() {
            fchown(&self.file, user.map(Uid::from_raw), group.map(Gid::from_raw))?;
        }
        Ok(fchmod(&self.file, Mode::from_bits_truncate(old.st_mode & 0o777))?)
    }

    pub(crate) fn write(&mut self, piece: &[u8]) -> Result<(), FileError> {
        Ok(self.file.write_all(piece)?)
    }

    /// Makes the file visible under its name.
    pub(crate) fn finish(mut self) -> Result<(), FileError> {
        let found = existing(&self.folder, &self.name)?;
        require_replaceable(&self.folder, &self.name, found.as_ref(), self.replaces.as_deref())?;
        renameat(&self.folder, self.temporary.as_str(), &self.folder, self.name.as_os_str())?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = unlinkat(&self.folder, self.temporary.as_str(), UnlinkatFlags::NoRemoveDir);
        }
    }
}
