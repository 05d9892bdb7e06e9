//! Reads and replaces text files that users write, such as the configuration. Their size is limited, and backups can be
//! stored beside them.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use lockhouse_policies::Source;
use nix::unistd::geteuid;

use crate::path_trust::{Fault, Strictness, TrustedOwners, account_name, check_path};

/// Maximum size, in bytes, of a text file that [`read_source`] reads, such as the configuration or a policy.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Maximum number of backups of one file. If there are that many, [`back_up`] fails.
const BACKUPS_MAX: u32 = 1_000;

/// Why a text file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system reported an error when the file was opened or read.
    #[error("cannot read {path}: {source}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    /// The file is not a regular file, is too large, or is not UTF-8.
    #[error("cannot use {path}: {reason}")]
    Unusable { path: PathBuf, reason: String },
}

/// Reads a UTF-8 text file of at most 4 MiB.
pub fn read_source(path: &Path) -> Result<Source, ReadError> {
    let unreadable = |source| ReadError::Unreadable { path: path.to_owned(), source };
    let unusable = |reason: String| ReadError::Unusable { path: path.to_owned(), reason };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unusable("it is not a regular file".into()));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(unusable(format!("it has {} bytes, the limit is {FILE_BYTES_MAX}", metadata.len())));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        unusable(format!("it is not UTF-8: line {line} has an invalid byte"))
    })?;
    Ok(Source { path: path.display().to_string(), text })
}

/// Returns the file that is changed by writing to a path: the target of its symbolic links.
///
/// # Errors
/// This process is root, and another account can change a directory or link on the way: it could lead root to any file
/// of the machine, and would lose a file of its own to root.
pub fn write_target(path: &Path) -> std::io::Result<PathBuf> {
    if geteuid().is_root() {
        check_path(&std::path::absolute(path)?, &TrustedOwners::root(), Strictness::Usual).map_err(
            |untrusted| {
                let advice = match &untrusted.fault {
                    Fault::Owner(owner) => format!("run this command as {}", account_name(*owner)),
                    _ => "change that first".to_owned(),
                };
                let rule = "root writes nothing that another account can redirect";
                std::io::Error::new(ErrorKind::PermissionDenied, format!("{untrusted}, and {rule}: {advice}"))
            },
        )?;
    }
    Ok(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
}

/// Copies a file to `FILE.lockhouse-backup-N` with mode 0600, because the file may contain secrets. Returns the path of
/// the copy.
pub fn back_up(path: &Path) -> std::io::Result<PathBuf> {
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

/// Replaces or creates a file atomically, and syncs it to disk. An existing file keeps its mode.
pub fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        if let Ok(existing) = std::fs::metadata(path) {
            file.set_permissions(std::fs::Permissions::from_mode(existing.permissions().mode() & 0o7777))?;
        }
        file.sync_all()
    });
    let result = written.and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

fn create(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
