//! The cursor of a destination: how much of each segment was delivered. It is a file of JSON lines, to which a line is
//! appended for each delivered batch; the last line about a segment is valid. If the end of the file is lost, records are
//! delivered again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use lockhouse_audit::SegmentName;
use lockhouse_base::files;
use serde::{Deserialize, Serialize};

/// Maximum size of the cursor of one destination, in bytes. At half of it, the file is written anew without old lines.
/// Bound: the audit log.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A file below this size is not written anew.
const REWRITE_BYTES_MIN: u64 = 256 * 1024;

/// How much of a segment was delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Number of bytes of the segment whose records were delivered.
    pub(crate) offset: u64,
    /// Sequence number of the next record.
    pub(crate) next_seq: u64,
    /// SHA-256 of the last delivered line in hexadecimal, which the next record must have as `prev`. Empty before the first
    /// record.
    pub(crate) hash: String,
    /// Whether the record with which a segment ends was delivered.
    pub(crate) is_closed: bool,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    segment: String,
    offset: u64,
    next_seq: u64,
    hash: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    closed: bool,
    /// Whether the segment has gone, and its position with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    removed: bool,
}

impl Line {
    fn new(segment: &SegmentName, position: &Position) -> Self {
        let Position { offset, next_seq, hash, is_closed } = position.clone();
        Self { segment: segment.to_string(), offset, next_seq, hash, closed: is_closed, removed: false }
    }

    fn write_to(&self, text: &mut Vec<u8>) {
        text.extend(serde_json::to_vec(self).unwrap_or_default());
        text.push(b'\n');
    }
}

/// Reads the positions that a cursor has. A missing file has none, and a line that is not valid is skipped: records are
/// then delivered again.
///
/// # Errors
/// The file cannot be read, or has more than 16 MiB.
pub(crate) fn read_positions(path: &Path) -> io::Result<BTreeMap<SegmentName, Position>> {
    let text = files::read_bytes_bounded(path, BYTES_MAX)?.unwrap_or_default();
    let mut positions = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
        let Some(segment) = SegmentName::parse(&line.segment) else { continue };
        if line.removed {
            positions.remove(&segment);
            continue;
        }
        let Line { offset, next_seq, hash, closed, .. } = line;
        positions.insert(segment, Position { offset, next_seq, hash, is_closed: closed });
    }
    Ok(positions)
}

/// The cursor of the destination to which this process forwards.
#[derive(Debug)]
pub(crate) struct CursorFile {
    path: PathBuf,
    positions: BTreeMap<SegmentName, Position>,
    /// The file, to append to it. `None` if it must be written anew.
    file: Option<File>,
    bytes: u64,
    /// Whether the file lacks a position.
    is_behind: bool,
}

impl CursorFile {
    /// Reads the cursor. A cursor that cannot be parsed begins again: everything is delivered once more.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let positions = read_positions(&path)?;
        Ok(Self { path, positions, file: None, bytes: 0, is_behind: false })
    }

    pub(crate) fn positions(&self) -> &BTreeMap<SegmentName, Position> {
        &self.positions
    }

    /// Stores positions, and waits until the disk has them. After a failure, they are stored with the next ones.
    pub(crate) fn advance(&mut self, delivered: BTreeMap<SegmentName, Position>) -> io::Result<()> {
        let mut text = Vec::new();
        for (segment, position) in &delivered {
            Line::new(segment, position).write_to(&mut text);
        }
        self.positions.extend(delivered);
        self.append(&text)
    }

    /// Removes the position of a segment that has gone.
    pub(crate) fn remove(&mut self, segment: &SegmentName) -> io::Result<()> {
        let Some(position) = self.positions.remove(segment) else { return Ok(()) };
        let mut text = Vec::new();
        Line { removed: true, ..Line::new(segment, &position) }.write_to(&mut text);
        self.append(&text)
    }

    /// Stores what could not be stored before.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.is_behind { self.rewrite() } else { Ok(()) }
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        let is_large = self.bytes + text.len() as u64 > REWRITE_BYTES_MIN.max(2 * self.rewritten_bytes());
        let Some(file) = self.file.as_mut().filter(|_| !is_large) else { return self.rewrite() };
        if let Err(error) = file.write_all(text).and_then(|()| file.sync_data()) {
            (self.file, self.is_behind) = (None, true);
            return Err(error);
        }
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Returns about how many bytes a file without old lines has.
    fn rewritten_bytes(&self) -> u64 {
        const LINE_BYTES: u64 = 200;
        self.positions.len() as u64 * LINE_BYTES
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        for (segment, position) in &self.positions {
            Line::new(segment, position).write_to(&mut text);
        }
        (self.file, self.is_behind) = (None, true);
        files::replace_for_service(&self.path, &text)?;
        self.file = Some(files::open_to_append(&self.path)?);
        (self.bytes, self.is_behind) = (text.len() as u64, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(number: u32) -> SegmentName {
        SegmentName::parse(&format!("2026-01-31-{number:032x}.jsonl")).expect("a name")
    }

    fn position(next_seq: u64) -> Position {
        Position { offset: next_seq * 100, next_seq, hash: "00".repeat(32), is_closed: next_seq == 9 }
    }

    #[test]
    fn the_last_position_of_each_segment_is_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cursor");
        let mut cursor = CursorFile::open(path.clone()).expect("a cursor");
        for (number, seq) in [(1, 3), (2, 4), (1, 9), (3, 1)] {
            cursor.advance([(segment(number), position(seq))].into()).expect("written");
        }
        cursor.remove(&segment(3)).expect("written");
        let expected: BTreeMap<_, _> = [(segment(1), position(9)), (segment(2), position(4))].into();
        assert_eq!(read_positions(&path).expect("readable"), expected);
        assert_eq!(CursorFile::open(path).expect("a cursor").positions(), &expected);
    }

    #[test]
    fn a_torn_last_line_is_as_if_it_were_not_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cursor");
        let mut cursor = CursorFile::open(path.clone()).expect("a cursor");
        cursor.advance([(segment(1), position(1))].into()).expect("written");
        let whole = std::fs::read(&path).expect("a file");
        cursor.advance([(segment(1), position(2))].into()).expect("written");
        let both = std::fs::read(&path).expect("a file");
        for length in whole.len()..both.len() - 1 {
            std::fs::write(&path, &both[..length]).expect("written");
            let found = read_positions(&path).expect("readable");
            assert_eq!(found[&segment(1)].next_seq, 1, "{length}");
        }
    }

    #[test]
    fn the_file_does_not_grow_with_the_number_of_batches() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("cursor");
        let mut cursor = CursorFile::open(path.clone()).expect("a cursor");
        let mut largest = 0;
        for seq in 0..3_000 {
            cursor.advance([(segment(1), position(seq))].into()).expect("written");
            largest = largest.max(std::fs::metadata(&path).expect("a file").len());
        }
        assert!(largest <= REWRITE_BYTES_MIN, "{largest}");
        assert_eq!(read_positions(&path).expect("readable")[&segment(1)].next_seq, 2_999);
    }
}
