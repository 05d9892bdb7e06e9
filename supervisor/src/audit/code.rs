//! Programs that ran, each kept once by its hash.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::execution::Language;
use crate::files;

const DIRECTORY: &str = "code";

/// Where a program is kept.
pub(crate) fn path(directory: &Path, language: &str, hash: &str) -> PathBuf {
    let ending = if language == Language::Python.as_str() { "py" } else { "ts" };
    directory.join(DIRECTORY).join(format!("{hash}.{ending}"))
}

/// Keeps a program, unless it is there already: then it is younger again.
pub(super) fn keep(path: &Path, code: impl FnOnce() -> String) -> io::Result<()> {
    match files::open_own(File::options().append(true), path) {
        Ok(file) => file.set_modified(SystemTime::now()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => files::replace(path, code().as_bytes()),
        Err(error) => Err(error),
    }
}

/// Removes what nothing has run since.
pub(super) fn expire(directory: &Path, before: SystemTime) -> io::Result<()> {
    let entries = match std::fs::read_dir(directory.join(DIRECTORY)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.metadata()?.modified()? < before {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
