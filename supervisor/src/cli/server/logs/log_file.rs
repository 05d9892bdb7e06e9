//! Reads the log file of an upstream server while another process writes and rotates it.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The maximum number of bytes that are read from one log file: more than the size at which a log file is rotated.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub(super) struct LogFile {
    path: PathBuf,
    /// The open log file, at the position to read next. `None` until the file exists.
    open: Option<File>,
    /// The bytes of an incomplete last line, which is continued by the next read.
    partial_line: Vec<u8>,
}

impl LogFile {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: None, partial_line: Vec::new() }
    }

    pub(super) fn is_missing(&self) -> bool {
        self.open.is_none()
    }

    /// Returns the last `count` lines of the log, including lines of the previous log file (`NAME.log.1`).
    pub(super) fn read_last(&mut self, count: usize) -> std::io::Result<Vec<String>> {
        let mut before = self.path.clone().into_os_string();
        before.push(".1");
        let mut lines = match open(Path::new(&before))? {
            Some(mut file) => self.read_lines(&mut file)?,
            None => Vec::new(),
        };
        lines.extend(self.read_new()?);
        Ok(lines.split_off(lines.len().saturating_sub(count)))
    }

    /// Returns the log lines that were written since the last read. Also returns the rest of the previous file if the
    /// log was rotated once in this time.
    pub(super) fn read_new(&mut self) -> std::io::Result<Vec<String>> {
        let Some(mut file) = self.open.take().map_or_else(|| open(&self.path), |file| Ok(Some(file)))? else {
            return Ok(Vec::new());
        };
        let mut lines = self.read_lines(&mut file)?;
        let new = open(&self.path)?;
        if let Some(mut new) = new
            && identity(&new)? != identity(&file)?
        {
            // Lines that were written to the old file before its rotation.
            lines.extend(self.read_lines(&mut file)?);
            lines.extend(self.read_lines(&mut new)?);
            file = new;
        }
        self.open = Some(file);
        Ok(lines)
    }

    /// Returns the complete lines from the file's read position to its end. Reads at most the last [`READ_BYTES_MAX`]
    /// bytes.
    fn read_lines(&mut self, file: &mut File) -> std::io::Result<Vec<String>> {
        let (at, end) = (file.stream_position()?, file.metadata()?.len());
        if end < at {
            // The file was truncated, so reading starts over.
            file.seek(SeekFrom::Start(0))?;
        } else if end - at > READ_BYTES_MAX {
            file.seek(SeekFrom::Start(end - READ_BYTES_MAX))?;
        }
        file.take(READ_BYTES_MAX).read_to_end(&mut self.partial_line)?;
        let Some(last) = self.partial_line.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(Vec::new());
        };
        let rest = self.partial_line.split_off(last + 1);
        let complete = std::mem::replace(&mut self.partial_line, rest);
        Ok(String::from_utf8_lossy(&complete).lines().map(str::to_owned).collect())
    }
}

fn open(path: &Path) -> std::io::Result<Option<File>> {
    match lockhouse_base::files::open_to_read(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn identity(file: &File) -> std::io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn append(path: &Path, text: &str) {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
    }

    #[test]
    fn each_line_is_read_once_across_rotation() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, before) = (directory.path().join("x.log"), directory.path().join("x.log.1"));
        let mut log = LogFile::new(&path);
        assert_eq!(log.read_last(2).expect("nothing"), Vec::<String>::new());
        assert!(log.is_missing());
        append(&before, "a\nb\n");
        append(&path, "c\nhal");
        assert_eq!(log.read_last(2).expect("lines"), ["b", "c"]);
        append(&path, "f\n");
        assert_eq!(log.read_new().expect("lines"), ["half"]);
        assert_eq!(log.read_new().expect("lines"), Vec::<String>::new());
        append(&path, "late\n");
        std::fs::rename(&path, &before).expect("a new name");
        append(&path, "new\n");
        assert_eq!(log.read_new().expect("lines"), ["late", "new"]);
        std::fs::remove_file(&path).expect("a file");
        assert_eq!(log.read_new().expect("lines"), Vec::<String>::new());
        append(&path, "newer\n");
        assert_eq!(log.read_new().expect("lines"), ["newer"]);
    }

    #[test]
    fn only_the_end_of_an_oversized_log_is_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.log");
        append(&path, &format!("{}\nlast\n", "x".repeat(READ_BYTES_MAX as usize)));
        assert_eq!(LogFile::new(&path).read_last(1).expect("a line"), ["last"]);
    }
}
