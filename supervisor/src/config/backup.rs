//! Files of other programs that we change: what they were stays beside them.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Backups of one file.
const BACKUPS_MAX: u32 = 1_000;

/// Copies a file to `FILE.lockhouse-backup-N`, which only its owner can read: it may hold secrets.
pub(crate) fn back_up(path: &Path) -> std::io::Result<PathBuf> {
    let content = std::fs::read(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for number in 1..=BACKUPS_MAX {
        let backup = path.with_file_name(format!("{name}.lockhouse-backup-{number}"));
        match create(&backup) {
            Ok(mut file) => {
                file.write_all(&content).and_then(|()| file.sync_all())?;
                return Ok(backup);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other(format!("there are {BACKUPS_MAX} backups of it already")))
}

/// Puts a text in the place of a file, or makes the file. Nobody meets half of it; its mode stays.
pub(crate) fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = create(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if let Ok(existing) = std::fs::metadata(path) {
            file.set_permissions(std::fs::Permissions::from_mode(existing.permissions().mode() & 0o7777))?;
        }
        file.sync_all()
    });
    let placed = written.and_then(|()| std::fs::rename(&draft, path));
    if placed.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    placed
}

fn create(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
