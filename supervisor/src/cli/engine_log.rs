//! The log file of shared engines: what such a process writes to its standard error, bounded in size.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockhouse_base::{directories, files};
use nix::sys::stat::fstat;
use nix::unistd::{dup2_stderr, dup2_stdout};

/// Size of the log file at which it becomes the previous one, in bytes. There are at most two files. Between two checks,
/// a file may exceed the size.
/// Bound: engines and fronts.
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// The log file of this user's shared engines. All of them write to the same file.
#[derive(Debug)]
pub(super) struct LogFile(PathBuf);

impl LogFile {
    /// Returns the log file below the state directory. `None` if there is no state directory.
    pub(super) fn new() -> Option<Self> {
        Some(Self(directories::state()?.join("engine.log")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the log file the standard error of this process.
    pub(super) fn redirect_stderr(&self) -> io::Result<()> {
        if let Some(parent) = self.0.parent() {
            files::create_private_directory(parent)?;
        }
        let file = files::open_to_append(&self.0)?;
        Ok(dup2_stderr(&file)?)
    }

    /// Starts a new file whenever the current one is too large, until this future is dropped.
    pub(super) async fn rotate(&self) -> std::convert::Infallible {
        loop {
            tokio::time::sleep(CHECK_EVERY).await;
            if let Err(error) = self.rotate_once() {
                tracing::warn!("the log file {} cannot be replaced: {error}", self.0.display());
            }
        }
    }

    fn rotate_once(&self) -> io::Result<()> {
        let current = fstat(io::stderr().as_fd())?;
        let is_in_place =
            || std::fs::symlink_metadata(&self.0).is_ok_and(|found| found.ino() == current.st_ino);
        if current.st_size as u64 > LOG_BYTES_MAX && is_in_place() {
            std::fs::rename(&self.0, self.0.with_extension("log.old"))?;
        }
        // Another engine may have moved the file too.
        if is_in_place() { Ok(()) } else { self.redirect_stderr() }
    }
}

/// Replaces standard output by `/dev/null`, after the process that started this one has read from it.
pub(super) fn release_stdout() -> io::Result<()> {
    let null: File = OpenOptions::new().write(true).custom_flags(libc::O_CLOEXEC).open("/dev/null")?;
    Ok(dup2_stdout(&null)?)
}
