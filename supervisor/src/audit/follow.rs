//! The end of segments, and what is added to them while they grow.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::read::{Found, LINE_BYTES_MAX, ReadError};
use super::record::Members;
use super::segment::SegmentName;
use crate::files;

/// What is read of the end of a segment: more than a hundred records.
const END_BYTES: u64 = 64 * 1024;
/// What is read at one time.
const READ_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A place in a segment.
#[derive(Clone, Debug)]
pub(crate) struct Follower {
    name: SegmentName,
    offset: u64,
    /// Whether the place may be in the middle of a line.
    is_within: bool,
}

impl Follower {
    /// At the start of a segment.
    pub(crate) fn at_start(name: SegmentName) -> Self {
        Self { name, offset: 0, is_within: false }
    }

    /// So near to its end that a hundred records come.
    pub(crate) fn near_end(directory: &Path, name: SegmentName) -> Self {
        let length = std::fs::metadata(directory.join(name.as_str())).map_or(0, |metadata| metadata.len());
        let offset = length.saturating_sub(END_BYTES);
        Self { name, offset, is_within: offset > 0 }
    }

    /// The whole records from here on, as far as one reading goes.
    pub(crate) fn next(&mut self, directory: &Path) -> Result<Vec<Found>, ReadError> {
        let path = directory.join(self.name.as_str());
        match self.read(&path) {
            // Its time was over meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|source| ReadError { path, source }),
        }
    }

    fn read(&mut self, path: &Path) -> io::Result<Vec<Found>> {
        let mut file = files::open_to_read(path)?;
        if file.metadata()?.len() == self.offset {
            return Ok(Vec::new());
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
                return Ok(found);
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
}
