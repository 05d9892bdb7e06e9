//! Reads the records that are appended to a segment (a file of the audit log), for `lockhouse audit tail`.

use std::fs::Metadata;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use lockhouse_base::files;

use super::client_names::NamesById;
use super::reader::{LINE_BYTES_MAX, LocatedRecord, ReadError};
use super::segment::SegmentName;

/// Number of bytes at the end of a segment with which `lockhouse audit tail` begins. They contain more than a hundred
/// records of usual size.
const END_BYTES: u64 = 64 * 1024;
/// Maximum number of bytes that one call of [`SegmentFollower::next`] reads from a segment.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A position in a segment from which new records are read.
#[derive(Clone, Debug)]
pub struct SegmentFollower {
    name: SegmentName,
    offset: u64,
    /// Whether the read position may be inside a line. The rest of that line is then skipped.
    is_within: bool,
    /// Device and inode of the segment, by which a replaced file is detected. `None` before the first read.
    file: Option<(u64, u64)>,
}

/// Records that were appended to a segment since the last read.
#[derive(Debug, Default)]
pub struct NewRecords {
    pub found: Vec<LocatedRecord>,
    /// A warning that the segment was replaced or truncated, which Lockhouse itself never does. The file is then read
    /// from its start again. `None` if neither happened.
    pub warning: Option<String>,
}

impl SegmentFollower {
    /// Returns a follower that starts at the beginning of a segment.
    pub fn at_start(name: SegmentName) -> Self {
        Self { name, offset: 0, is_within: false, file: None }
    }

    /// Returns a follower that starts 64 KiB before the end of a segment, so that about a hundred existing records
    /// are returned first.
    pub fn near_end(directory: &Path, name: SegmentName) -> Self {
        let metadata = std::fs::symlink_metadata(directory.join(name.as_str()));
        let length = metadata.map_or(0, |metadata| metadata.len());
        let offset = length.saturating_sub(END_BYTES);
        Self { name, offset, is_within: offset > 0, file: None }
    }

    /// Reads the complete records after the current position, from at most 4 MiB of the file. Returns no records if the
    /// file was removed.
    pub fn next(&mut self, directory: &Path) -> Result<NewRecords, ReadError> {
        let path = directory.join(self.name.as_str());
        match self.read(directory, &path) {
            // The segment has expired and was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(NewRecords::default()),
            read => read.map_err(|source| ReadError { path, source }),
        }
    }

    fn read(&mut self, directory: &Path, path: &Path) -> io::Result<NewRecords> {
        let mut file = files::open_to_read(path)?;
        let metadata = file.metadata()?;
        let warning = self.detect_replacement(&metadata);
        if metadata.len() == self.offset {
            return Ok(NewRecords { found: Vec::new(), warning });
        }
        let names = NamesById::read(directory)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::new(file.take(READ_BYTES_MAX));
        let mut found = Vec::new();
        loop {
            let mut line = Vec::new();
            let bytes = reader.read_until(b'\n', &mut line)? as u64;
            if line.pop_if(|last| *last == b'\n').is_none() {
                // An incomplete line is read again later, unless it is too long to be a record.
                if bytes > LINE_BYTES_MAX {
                    self.offset += bytes;
                    self.is_within = true;
                }
                return Ok(NewRecords { found, warning });
            }
            self.offset += bytes;
            if std::mem::take(&mut self.is_within) {
                continue;
            }
            let text = String::from_utf8(line).ok();
            found.extend(text.and_then(|text| LocatedRecord::parse(self.name.clone(), text, &names)));
        }
    }

    /// Detects that the file was replaced or truncated. In that case moves the read position to the start of the file,
    /// and returns a warning.
    fn detect_replacement(&mut self, metadata: &Metadata) -> Option<String> {
        let file = (metadata.dev(), metadata.ino());
        let before = self.file.replace(file);
        let what = match before {
            Some(before) if before != file => "was replaced by another file",
            _ if metadata.len() < self.offset => "was truncated",
            _ => return None,
        };
        (self.offset, self.is_within) = (0, false);
        Some(format!("{} {what} while it was being read; `lockhouse audit verify` shows details", self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_truncated_or_replaced_segment_is_read_from_its_start_with_a_warning() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = SegmentName::new(SystemTime::now());
        let path = directory.path().join(name.as_str());
        let line = |seq: u32| format!("{{\"seq\":{seq},\"event\":\"call\"}}\n");
        std::fs::write(&path, line(0) + &line(1)).expect("written");
        let mut follower = SegmentFollower::at_start(name);
        let mut next = || {
            let NewRecords { found, warning } = follower.next(directory.path()).expect("readable");
            let seqs: Vec<u64> = found.iter().map(|found| found.record.seq).collect();
            (seqs, warning.unwrap_or_default())
        };
        assert_eq!(next(), (vec![0, 1], String::new()));
        let whole = line(0) + &line(1) + &line(2);
        std::fs::write(&path, &whole).expect("written");
        assert_eq!(next(), (vec![2], String::new()), "control: it has grown");
        std::fs::write(&path, line(7)).expect("written");
        let (seqs, warning) = next();
        assert!(seqs == [7] && warning.contains("was truncated"), "{seqs:?} {warning}");
        std::fs::write(directory.path().join("other"), &whole).expect("written");
        std::fs::rename(directory.path().join("other"), &path).expect("renamed");
        let (seqs, warning) = next();
        assert!(seqs == [0, 1, 2] && warning.contains("was replaced by another file"), "{seqs:?} {warning}");
        assert_eq!(next(), (vec![], String::new()));
    }
}
