//! Reads the next batch of records of a segment, from the position up to which it was delivered.

use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use data_encoding::HEXLOWER;
use lockhouse_audit::reader::LINE_BYTES_MAX;
use lockhouse_audit::{NamesById, SegmentName};
use lockhouse_base::files;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::cursor_file::Position;

/// Maximum number of records that are sent to a destination of the audit log in one batch.
/// Bound: the audit log.
pub(crate) const BATCH_RECORDS_MAX: usize = 512;
/// Number of bytes of records after which a batch ends. It is exceeded by less than one record of at most 1 MiB.
/// Bound: the audit log.
const BATCH_BYTES_MAX: u64 = 1024 * 1024;

/// Records of one segment, in their order.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) segment: SegmentName,
    /// The Unix user whose records these are.
    pub(crate) uid: u32,
    /// The names of clients of which the records have ids.
    pub(crate) names: NamesById,
    pub(crate) records: Vec<OutgoingRecord>,
    /// The position after these records.
    pub(crate) end: Position,
    /// Whether the first record does not continue what was delivered before.
    pub(crate) is_discontinuous: bool,
    /// Whether the file was shorter than its delivered part. The batch then begins at the start of the file.
    pub(crate) is_truncated: bool,
}

/// One record, as the log has it.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingRecord {
    pub(crate) seq: u64,
    pub(crate) time: String,
    pub(crate) event: String,
    /// The outcome of an administrative event, by which its severity differs.
    pub(crate) outcome: Option<String>,
    /// The line of the record, without its line feed. It is valid JSON in UTF-8.
    pub(crate) line: String,
}

/// The members that every record has.
#[derive(Deserialize)]
struct Members {
    seq: u64,
    #[serde(default)]
    prev: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    event: String,
    outcome: Option<String>,
}

/// Limits of one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    pub(crate) records: usize,
    pub(crate) bytes: u64,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { records: BATCH_RECORDS_MAX, bytes: BATCH_BYTES_MAX }
    }
}

/// Reads the next complete records of a segment. Lines that are no records, such as a torn one, are skipped. The batch ends
/// before a record that does not continue the previous one, so that such a record is always the first of a batch.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_batch(
    directory: &Path,
    segment: &SegmentName,
    from: &Position,
    limits: BatchLimits,
) -> io::Result<Batch> {
    let mut file = files::open_to_read(&directory.join(segment.as_str()))?;
    let metadata = file.metadata()?;
    let is_truncated = metadata.len() < from.offset;
    let start = if is_truncated { Position::default() } else { from.clone() };
    file.seek(SeekFrom::Start(start.offset))?;
    let mut batch = Batch {
        segment: segment.clone(),
        uid: metadata.uid(),
        names: NamesById::read(directory)?,
        records: Vec::new(),
        end: start,
        is_discontinuous: false,
        is_truncated,
    };
    let mut reader = BufReader::new(file);
    let mut bytes = 0;
    while batch.records.len() < limits.records && bytes < limits.bytes {
        let Some(line) = next_line(&mut reader)? else { break };
        let offset = batch.end.offset + line.bytes;
        let Some((members, text)) = line.text.as_deref().and_then(parse) else {
            batch.end.offset = offset;
            continue;
        };
        if !continues(&members, &batch.end) {
            if !batch.records.is_empty() {
                break;
            }
            batch.is_discontinuous = true;
        }
        // Only records count: what is skipped takes no memory.
        bytes += line.bytes;
        batch.end = Position {
            offset,
            next_seq: members.seq.saturating_add(1),
            hash: HEXLOWER.encode(&Sha256::digest(text)),
            is_closed: members.event == "close",
        };
        let Members { seq, time, event, outcome, .. } = members;
        batch.records.push(OutgoingRecord { seq, time, event, outcome, line: text.to_owned() });
    }
    Ok(batch)
}

/// Returns the Unix user that the first record of a segment names, as the audit sink writes it. `None` if it names none.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_account(directory: &Path, segment: &SegmentName) -> io::Result<Option<u32>> {
    #[derive(Deserialize)]
    struct First {
        event: String,
        uid: Option<u32>,
    }
    let file = files::open_to_read(&directory.join(segment.as_str()))?;
    let line = next_line(&mut BufReader::new(file))?.and_then(|line| line.text);
    let first: Option<First> = line.and_then(|line| serde_json::from_slice(&line).ok());
    Ok(first.filter(|first| first.event == "open").and_then(|first| first.uid))
}

/// Whether a record is the one that follows a position. The first record of a segment may continue another segment.
fn continues(members: &Members, position: &Position) -> bool {
    members.seq == position.next_seq && (position.hash.is_empty() || members.prev == position.hash)
}

fn parse(line: &[u8]) -> Option<(Members, &str)> {
    let text = std::str::from_utf8(line).ok()?;
    Some((serde_json::from_str(text).ok()?, text))
}

/// A complete line of a segment.
struct Line {
    /// Number of its bytes, with the line feed.
    bytes: u64,
    /// The line without the line feed. `None` if it is too long to be a record.
    text: Option<Vec<u8>>,
}

/// Returns the next complete line. `None` if the file has no further one.
fn next_line(reader: &mut impl io::BufRead) -> io::Result<Option<Line>> {
    let mut text = Vec::new();
    reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text)?;
    if text.pop_if(|last| *last == b'\n').is_some() {
        return Ok(Some(Line { bytes: text.len() as u64 + 1, text: Some(text) }));
    }
    if (text.len() as u64) < LINE_BYTES_MAX {
        return Ok(None);
    }
    let rest = reader.skip_until(b'\n')? as u64;
    // A line without an end is read again when it has one.
    Ok((rest > 0).then_some(Line { bytes: LINE_BYTES_MAX + rest, text: None }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    struct Log {
        directory: tempfile::TempDir,
        segment: SegmentName,
    }

    impl Log {
        fn new(text: &str) -> Self {
            let name = format!("2026-01-31-{:032x}.jsonl", 7);
            let log = Self {
                directory: tempfile::tempdir().expect("a directory"),
                segment: SegmentName::parse(&name).expect("a name"),
            };
            log.write(text);
            log
        }

        fn write(&self, text: &str) {
            std::fs::write(self.directory.path().join(self.segment.as_str()), text).expect("written");
        }

        fn read(&self, from: &Position) -> Batch {
            let limits = BatchLimits { records: 2, ..BatchLimits::default() };
            read_batch(self.directory.path(), &self.segment, from, limits).expect("readable")
        }

        /// Reads all batches. Returns the numbers of the records of each, with `!` before those of one that does not
        /// continue.
        fn batches(&self) -> Vec<String> {
            let (mut found, mut position) = (Vec::new(), Position::default());
            loop {
                let batch = self.read(&position);
                if batch.records.is_empty() {
                    return found;
                }
                let numbers: Vec<String> =
                    batch.records.iter().map(|record| record.seq.to_string()).collect();
                let mark = if batch.is_discontinuous { "!" } else { "" };
                found.push(format!("{mark}{}", numbers.join(" ")));
                position = batch.end;
            }
        }
    }

    /// Returns the lines of a chain of records with these numbers and events.
    pub(crate) fn chain_of<'a>(records: impl IntoIterator<Item = (u64, &'a str)>) -> Vec<String> {
        let mut prev = "00".repeat(32);
        let line = |(seq, event): (u64, &str)| {
            let time = "2026-01-31T12:00:00Z";
            let line =
                format!("{{\"seq\":{seq},\"prev\":\"{prev}\",\"time\":\"{time}\",\"event\":\"{event}\"}}");
            prev = HEXLOWER.encode(&Sha256::digest(&line));
            line
        };
        records.into_iter().map(line).collect()
    }

    fn chain(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
        chain_of(numbers.into_iter().map(|number| (number, "call")))
    }

    #[test]
    fn records_are_read_in_batches_and_an_incomplete_line_waits() {
        let lines = chain(0..5);
        let log = Log::new(&format!("{}\n{{\"seq\":5", lines.join("\n")));
        assert_eq!(log.batches(), ["0 1", "2 3", "4"]);
        let first = log.read(&Position::default());
        assert_eq!(first.records[1].line, lines[1]);
        assert_eq!(first.end.offset as usize, lines[0].len() + lines[1].len() + 2);
    }

    #[test]
    fn lines_that_are_no_records_are_skipped() {
        let lines = chain(0..3);
        let long = "x".repeat(LINE_BYTES_MAX as usize + 5);
        let log = Log::new(&format!("{}\ntorn\n{}\n{long}\n\u{0}\n{}\n", lines[0], lines[1], lines[2]));
        assert_eq!(log.batches(), ["0 1", "2"]);
        log.write(&format!("{}\n{long}", lines[0]));
        assert_eq!(log.batches(), ["0"], "a long line without an end");
    }

    #[test]
    fn a_record_that_does_not_continue_the_delivered_ones_is_marked() {
        let lines = chain(0..4);
        let without_one = format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3]);
        assert_eq!(Log::new(&without_one).batches(), ["0", "!2 3"], "one is missing");
        let changed = lines[1].replace("call", "calm");
        let log = Log::new(&format!("{}\n{changed}\n{}\n", lines[0], lines[2]));
        assert_eq!(log.batches(), ["0 1", "!2"], "one is changed");
        let log = Log::new(&(lines.join("\n") + "\n"));
        let end = log.read(&Position::default()).end;
        assert!(!log.read(&end).is_discontinuous, "control");
        log.write(&format!("{}\n", lines[0]));
        let again = log.read(&end);
        assert!(again.is_truncated && again.records[0].seq == 0, "{again:?}");
    }
}
