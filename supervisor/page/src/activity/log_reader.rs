//! Reads the audit log of all processes: first the latest part of what exists, and then the records that are appended.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lockhouse_audit::reader::ReadError;
use lockhouse_audit::{Record, SegmentFollower, SegmentName, segments};

/// How many days of the audit log are read at most.
/// Bound: the live page.
pub(super) const DAYS_MAX: u64 = 30;
/// Maximum bytes of the existing audit log that are read. The oldest segments beyond that are left out.
/// Bound: the live page.
const HISTORY_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Number of records after which one call of [`LogReader::read_new`] returns.
const BATCH_RECORDS: usize = 20_000;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The position up to which each segment (file) of the audit log was read.
pub(super) struct LogReader {
    directory: PathBuf,
    /// The segments that are read, each with its size when it was last read.
    positions: BTreeMap<SegmentName, (SegmentFollower, u64)>,
    /// Segments before this one are not read. `None` before the first read.
    first: Option<String>,
}

/// Records that were not read before.
#[derive(Debug)]
pub(super) struct NewRecords {
    pub(super) records: Vec<Record>,
    /// Whether there are further records now.
    pub(super) has_more: bool,
}

impl LogReader {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, positions: BTreeMap::new(), first: None }
    }

    /// Reads records that were not read before, those of one process in their order.
    pub(super) fn read_new(&mut self) -> Result<NewRecords, ReadError> {
        let mut names = match segments(&self.directory) {
            Ok(names) => names,
            // No log exists before the first run.
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(ReadError { path: self.directory.clone(), source }),
        };
        names.sort_unstable();
        let first = self.first.get_or_insert_with(|| first_segment(&self.directory, &names));
        names.retain(|name| name.as_str() >= first.as_str());
        self.positions.retain(|name, _| names.binary_search(name).is_ok());
        let mut new = NewRecords { records: Vec::new(), has_more: false };
        for name in names {
            let position = self.positions.entry(name.clone());
            let (follower, known) = position.or_insert_with(|| (SegmentFollower::at_start(name.clone()), 0));
            let size = size(&self.directory, &name);
            // The follower reads a part of the file at a time.
            while *known != size {
                if new.records.len() >= BATCH_RECORDS {
                    new.has_more = true;
                    return Ok(new);
                }
                let read = follower.next(&self.directory)?;
                if read.found.is_empty() {
                    *known = size;
                }
                new.records.extend(read.found.into_iter().map(|found| found.record));
            }
        }
        Ok(new)
    }
}

fn size(directory: &Path, name: &SegmentName) -> u64 {
    std::fs::symlink_metadata(directory.join(name.as_str())).map_or(0, |metadata| metadata.len())
}

/// Returns the name of the first segment that is read: of the last [`DAYS_MAX`] days, and not more than
/// [`HISTORY_BYTES_MAX`] in total, but at least the last segment.
fn first_segment(directory: &Path, names: &[SegmentName]) -> String {
    let earliest = SystemTime::now().checked_sub(DAY * DAYS_MAX as u32).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut first = humantime::format_rfc3339_seconds(earliest).to_string()[..10].to_owned();
    let mut bytes = 0;
    for (at, name) in names.iter().enumerate().rev() {
        bytes += size(directory, name);
        if bytes > HISTORY_BYTES_MAX && at + 1 < names.len() {
            first = first.max(names[at + 1].as_str().to_owned());
            break;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, name: &str, text: &str) {
        use std::io::Write as _;
        let mut file =
            std::fs::File::options().create(true).append(true).open(directory.join(name)).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
    }

    #[test]
    fn records_are_read_once_from_all_segments_of_the_last_days() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut reader = LogReader::new(directory.path().join("missing"));
        assert_eq!(reader.read_new().expect("no log yet").records.len(), 0);
        let today = humantime::format_rfc3339_seconds(SystemTime::now()).to_string()[..10].to_owned();
        let name = |day: &str, n: u8| format!("{day}-{n:032x}.jsonl");
        let line = |seq: u32| format!("{{\"seq\":{seq},\"event\":\"end\",\"execution\":\"e\"}}\n");
        write(directory.path(), &name("2020-01-01", 1), &line(0));
        write(directory.path(), &name(&today, 2), &(line(1) + &line(2) + "{\"seq\":3,"));
        let mut reader = LogReader::new(directory.path().to_owned());
        let mut read = || -> Vec<u64> {
            let new = reader.read_new().expect("readable");
            assert!(!new.has_more);
            new.records.iter().map(|record| record.seq).collect()
        };
        assert_eq!(read(), [1, 2]);
        assert!(read().is_empty());
        write(directory.path(), &name(&today, 2), "\"event\":\"end\"}\n");
        write(directory.path(), &name(&today, 3), &line(4));
        assert_eq!(read(), [3, 4]);
        assert!(read().is_empty());
    }
}
