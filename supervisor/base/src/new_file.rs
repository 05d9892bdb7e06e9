//! Creates text files that users edit, with the owner and mode that they need.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::unistd::Gid;

/// Mode of a file that only its owner can read.
pub(crate) const PRIVATE_MODE: u32 = 0o600;
/// What follows the name of a file in the name of its backup, before a number.
pub(crate) const BACKUP: &str = ".lockhouse-backup-";

/// The attributes of a new file.
pub(crate) struct NewFile<'p> {
    /// The file that has the owner and the mode. If there is none, `mode` and `group` apply.
    pub(crate) like: Option<&'p Path>,
    pub(crate) mode: u32,
    pub(crate) group: Option<Gid>,
}

impl NewFile<'_> {
    /// Creates the file, and syncs it to disk. Removes it if that fails.
    pub(crate) fn create(&self, path: &Path, text: &str) -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(PRIVATE_MODE).open(path)?;
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| self.apply_to(&file))
            .and_then(|()| file.sync_all());
        if written.is_err() {
            let _ = std::fs::remove_file(path);
        }
        written
    }

    fn apply_to(&self, file: &std::fs::File) -> std::io::Result<()> {
        let like = self.like.map(std::fs::metadata).transpose()?;
        let (owner, group, mode) = match &like {
            Some(like) => (Some(like.uid()), Some(like.gid()), like.mode() & 0o7777),
            None => (None, self.group.map(Gid::as_raw), self.mode),
        };
        let own = file.metadata()?;
        if owner.is_some_and(|owner| owner != own.uid()) || group.is_some_and(|group| group != own.gid()) {
            std::os::unix::fs::fchown(file, owner, group)?;
        }
        file.set_permissions(std::fs::Permissions::from_mode(mode))
    }
}
