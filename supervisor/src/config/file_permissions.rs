//! Checks whether other Unix users can modify the configuration and policy, or read files with secrets.
//!
//! As with StrictModes of OpenSSH, a file counts as writable by other users if they can write to any directory on its
//! path.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User};

use super::error::ConfigError;

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITES: u32 = 0o002;
const GROUP_READS: u32 = 0o040;
const OTHERS_READS: u32 = 0o004;
/// The sticky bit of a directory's mode: users cannot replace files of other users in such a directory.
const STICKY: u32 = 0o1000;
/// The maximum number of files of one directory whose permissions are checked.
const FILES_MAX: usize = 1_000;

/// A file with a secret that Unix users other than its owner can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadableSecret {
    pub(crate) path: PathBuf,
    pub(crate) readers: String,
    pub(crate) mode: u32,
}

impl ReadableSecret {
    /// Returns the shell command that corrects the file's permissions.
    pub(crate) fn fix(&self) -> String {
        format!("chmod 600 {}", self.path.display())
    }
}

impl std::fmt::Display for ReadableSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, readers, mode } = self;
        write!(
            f,
            "{} holds a secret, and {readers} can read it (mode {mode:04o}): run `{}`",
            path.display(),
            self.fix()
        )
    }
}

/// Rejects a file if other Unix users could have written it, or can write a directory on its path and so replace it. A
/// missing file is accepted.
///
/// # Errors
/// [`ConfigError::Unusable`], which names the writable file or directory and the command that corrects its permissions.
pub(super) fn refuse_if_writable(path: &Path) -> Result<(), ConfigError> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Checks both the given path and the resolved one: a user who can change a symbolic link chooses the file.
    let real = std::fs::canonicalize(&absolute).unwrap_or_else(|_| absolute.clone());
    for part in real.ancestors().chain(absolute.ancestors()) {
        let Ok(metadata) = std::fs::metadata(part) else { continue };
        if metadata.is_dir() && metadata.mode() & STICKY != 0 {
            continue;
        }
        let Some(writers) = describe_others(&metadata, GROUP_WRITES, OTHERS_WRITES) else { continue };
        let (part, mode) = (part.display(), metadata.mode() & 0o7777);
        let reason = format!(
            "{part} can be written by others ({writers}, mode {mode:04o}), who could change what code may do: run `chmod go-w {part}`"
        );
        return Err(ConfigError::Unusable { path: path.to_owned(), reason });
    }
    Ok(())
}

/// Returns those of the given files that Unix users other than the owner can read. A file of another user that only its
/// group can read is not returned: a service reads files of root in this manner. Skips directories and missing files.
pub(super) fn readable_secrets(files: impl Iterator<Item = PathBuf>) -> Vec<ReadableSecret> {
    let readable = |path: PathBuf| {
        let metadata = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?;
        let readers = describe_others(&metadata, GROUP_READS, OTHERS_READS)?;
        // A service reads files of root through its group.
        let is_for_service =
            metadata.mode() & OTHERS_READS == 0 && metadata.uid() != Uid::effective().as_raw();
        (!is_for_service).then(|| ReadableSecret { path, readers, mode: metadata.mode() & 0o7777 })
    };
    files.filter_map(readable).collect()
}

/// Returns the paths of the first [`FILES_MAX`] entries of a directory. Returns none if the directory cannot be read.
pub(super) fn files_in(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).take(FILES_MAX)
}

/// Describes who besides the owner has a permission on a file. `group` and `others` are the mode bits of the
/// permission. Returns `None` if only the owner has it.
fn describe_others(metadata: &std::fs::Metadata, group: u32, others: u32) -> Option<String> {
    if metadata.mode() & others != 0 {
        return Some("everybody on this machine".to_owned());
    }
    if metadata.mode() & group == 0 || is_private(metadata.gid(), metadata.uid()) {
        return None;
    }
    let name = Group::from_gid(Gid::from_raw(metadata.gid())).ok().flatten();
    Some(format!("group {}", name.map_or_else(|| metadata.gid().to_string(), |group| group.name)))
}

/// Whether a group is the private group of the file's owner, as is usual with umask 002: it has the owner's
/// name and no other members. If neither the group nor the owner has a name, as in some containers, their ids
/// must be equal.
fn is_private(group: u32, owner: u32) -> bool {
    let (group_entry, user_entry) =
        (Group::from_gid(Gid::from_raw(group)), User::from_uid(Uid::from_raw(owner)));
    match (group_entry, user_entry) {
        (Ok(Some(group)), Ok(Some(owner))) => {
            group.name == owner.name && group.mem.iter().all(|member| *member == owner.name)
        }
        (Ok(None), Ok(None)) => group == owner,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn a_file_is_refused_if_others_can_write_it_or_a_directory_on_its_way() {
        let root = tempfile::tempdir().expect("a directory");
        let (directory, elsewhere) = (root.path().join("a"), root.path().join("b"));
        for path in [&directory, &elsewhere] {
            std::fs::create_dir(path).expect("a directory");
        }
        let (file, link) = (directory.join("policy.toml"), elsewhere.join("policy.toml"));
        std::fs::write(&file, "").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let refused = |path: &Path| refuse_if_writable(path).err().map(|error| error.to_string());
        assert_eq!((refused(&file), refused(&link)), (None, None), "control");
        set(&file, 0o646);
        let message = refused(&file).expect("refused");
        assert!(
            message.contains("everybody") && message.contains(&format!("chmod go-w {}", file.display())),
            "{message}"
        );
        set(&file, 0o644);
        set(&directory, 0o777);
        assert!(refused(&file).is_some() && refused(&link).is_some());
        set(&directory, 0o1777);
        assert_eq!(refused(&file), None, "a sticky directory");
        set(&directory, 0o700);
        set(&elsewhere, 0o777);
        assert!(refused(&link).is_some(), "the link can be changed");
        assert_eq!(refused(&file), None);
        assert_eq!(refused(&directory.join("none")), None);
    }

    #[test]
    fn a_group_of_ones_own_is_not_others() {
        let owner = User::from_uid(Uid::effective()).ok().flatten().expect("a user");
        let own = Group::from_name(&owner.name).ok().flatten();
        if let Some(own) = own.filter(|own| own.mem.is_empty()) {
            assert!(is_private(own.gid.as_raw(), owner.uid.as_raw()));
        }
        assert!(!is_private(4_000_000_000, owner.uid.as_raw()));
        assert!(is_private(4_000_000_000, 4_000_000_000) && !is_private(4_000_000_000, 4_000_000_001));
    }

    #[test]
    fn a_secret_that_others_can_read_is_reported_with_the_fix() {
        let directory = tempfile::tempdir().expect("a directory");
        let (open, closed) = (directory.path().join("open"), directory.path().join("closed"));
        for (path, mode) in [(&open, 0o604), (&closed, 0o600)] {
            std::fs::write(path, "").expect("a file");
            set(path, mode);
        }
        let found = readable_secrets(files_in(directory.path()));
        assert_eq!(found.iter().map(|found| &found.path).collect::<Vec<_>>(), [&open]);
        let message = found[0].to_string();
        assert!(message.contains("mode 0604") && message.contains("chmod 600"), "{message}");
    }
}
