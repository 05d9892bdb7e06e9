//! Appends records to a segment (a file of the audit log), and removes an incomplete record if a write fails.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use lockhouse_base::files;

/// A segment to which whole lines are appended.
#[derive(Debug)]
pub(super) struct SegmentFile {
    file: Arc<File>,
    /// Size of the file in bytes. The next line is appended at this offset.
    bytes: u64,
}

/// Why lines could not be appended to a segment.
#[derive(Debug)]
pub(super) struct AppendError {
    pub(super) source: io::Error,
    /// Number of bytes that an incomplete write left at the end of the file because they could not be removed;
    /// otherwise 0.
    pub(super) torn: u64,
}

impl AppendError {
    /// An error that occurred before anything was written.
    pub(super) fn before_write(source: io::Error) -> Self {
        Self { source, torn: 0 }
    }
}

impl SegmentFile {
    /// Creates a new segment with mode 0600. Fails if the file exists.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path)?;
        files::give_to_owner_of_directory(&file, path)?;
        Ok(Self { file: Arc::new(file), bytes: 0 })
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn file(&self) -> Arc<File> {
        self.file.clone()
    }

    /// Whether the file was removed from its directory. Further records in a removed file would be lost.
    pub(super) fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// Appends `lines` to the file. If the write fails, removes the part that was already written, if possible. Makes
    /// one write call if possible: a killed process then leaves only complete lines, and programs that follow the file
    /// see only complete lines.
    pub(super) fn append(&mut self, lines: &[u8]) -> Result<(), AppendError> {
        let Err(source) = (&*self.file).write_all(lines) else {
            self.bytes += lines.len() as u64;
            return Ok(());
        };
        let length = self.file.metadata().map_or(self.bytes, |metadata| metadata.len());
        if length == self.bytes || self.file.set_len(self.bytes).is_ok() {
            return Err(AppendError { source, torn: 0 });
        }
        // An append-only file keeps the incomplete line, and the next append terminates it.
        let torn = length.saturating_sub(self.bytes);
        self.bytes = length;
        Err(AppendError { source, torn })
    }
}
