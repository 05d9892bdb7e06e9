//! The end of segments, and what is added to them while they grow.

use std::fs::Metadata;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use lockhouse_base::files;

use super::read::{Found, LINE_BYTES_MAX, ReadError};
use super::record::Members;
use super::segment::SegmentName;

/// What is read of the end of a segment: more than a hundred records.
const END_BYTES: u64 = 64 * 1024;
/// What is read at one time.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A place in a segment.
#[derive(Clone, Debug)]
pub struct Follower {
    name: SegmentName,
    offset: u64,
    /// Whether the place may be in the middle of a line.
    is_within: bool,
    /// Device and inode of the file in which the place is, once it was read.
    file: Option<(u64, u64)>,
}

/// What was added to a segment.
#[derive(Debug, Default)]
pub struct News {
    pub found: Vec<Found>,
    /// That the file is another one, or has less than it had: it is read from its start. No process of Lockhouse does that.
    pub disturbed: Option<String>,
}

impl Follower {
    /// At the start of a segment.
    pub fn at_start(name: SegmentName) -> Self {
        Self { name, offset: 0, is_within: false, file: None }
    }

    /// So near to its end that a hundred records come.
    pub fn near_end(directory: &Path, name: SegmentName) -> Self {
        let metadata = std::fs::symlink_metadata(directory.join(name.as_str()));
        let length = metadata.map_or(0, |metadata| metadata.len());
        let offset = length.saturating_sub(END_BYTES);
        Self { name, offset, is_within: offset > 0, file: None }
    }

    /// The whole records from here on, as far as one reading goes.
    pub fn next(&mut self, directory: &Path) -> Result<News, ReadError> {
        let path = directory.join(self.name.as_str());
        match self.read(&path) {
            // Its time was over meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(News::default()),
            read => read.map_err(|source| ReadError { path, source }),
        }
    }

    fn read(&mut self, path: &Path) -> io::Result<News> {
        let mut file = files::open_to_read(path)?;
        let metadata = file.metadata()?;
        let disturbed = self.look_for_another(&metadata);
        if metadata.len() == self.offset {
            return Ok(News { found: Vec::new(), disturbed });
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::new(file.take(READ_BYTES_MAX));
        let mut found = Vec::new();
        loop {
            let mut line = Vec::new();
            let bytes = reader.read_until(b'\n', &mut line)? as u64;
            if line.pop_if(|last| *last == b'\n').is_none() {
                // One that is not whole yet is read again; one that never will be is not.
                if bytes > LINE_BYTES_MAX {
                    self.offset += bytes;
                    self.is_within = true;
                }
                return Ok(News { found, disturbed });
            }
            self.offset += bytes;
            if std::mem::take(&mut self.is_within) {
                continue;
            }
            if let Ok(text) = String::from_utf8(line)
                && let Ok(members) = serde_json::from_str::<Members>(&text)
            {
                found.push(Found { segment: self.name.clone(), text, record: members.into_record() });
            }
        }
    }

    /// Goes to the start of a file that is not the one from before.
    fn look_for_another(&mut self, metadata: &Metadata) -> Option<String> {
        let file = (metadata.dev(), metadata.ino());
        let before = self.file.replace(file);
        let what = match before {
            Some(before) if before != file => "was replaced by another file",
            _ if metadata.len() < self.offset => "was cut",
            _ => return None,
        };
        (self.offset, self.is_within) = (0, false);
        Some(format!("{} {what} while it was followed; `lockhouse audit verify` says more", self.name))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_segment_that_was_cut_or_replaced_is_read_from_its_start_and_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let name = SegmentName::new(SystemTime::now());
        let path = directory.path().join(name.as_str());
        let line = |seq: u32| format!("{{\"seq\":{seq},\"event\":\"call\"}}\n");
        std::fs::write(&path, line(0) + &line(1)).expect("written");
        let mut follower = Follower::at_start(name);
        let mut next = || {
            let News { found, disturbed } = follower.next(directory.path()).expect("readable");
            let seqs: Vec<u64> = found.iter().map(|found| found.record.seq).collect();
            (seqs, disturbed.unwrap_or_default())
        };
        assert_eq!(next(), (vec![0, 1], String::new()));
        let whole = line(0) + &line(1) + &line(2);
        std::fs::write(&path, &whole).expect("written");
        assert_eq!(next(), (vec![2], String::new()), "control: it has grown");
        std::fs::write(&path, line(7)).expect("written");
        let (seqs, told) = next();
        assert!(seqs == [7] && told.contains("was cut"), "{seqs:?} {told}");
        std::fs::write(directory.path().join("other"), &whole).expect("written");
        std::fs::rename(directory.path().join("other"), &path).expect("renamed");
        let (seqs, told) = next();
        assert!(seqs == [0, 1, 2] && told.contains("was replaced by another file"), "{seqs:?} {told}");
        assert_eq!(next(), (vec![], String::new()));
    }
}
