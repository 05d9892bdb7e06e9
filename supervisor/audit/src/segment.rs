//! One file of the log: its name, and the way in which lines get into it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use lockhouse_base::files;

use super::line::moment;

const ENDING: &str = ".jsonl";
const DAY_CHARS: usize = "2026-01-31".len();

/// `DAY-UUID.jsonl`, whose order is that of time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName(String);

impl SegmentName {
    /// A new one of this moment.
    pub(super) fn new(now: SystemTime) -> Self {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let moment = uuid::Timestamp::from_unix(uuid::NoContext, since.as_secs(), since.subsec_nanos());
        Self(format!("{}-{}{ENDING}", day(now), uuid::Uuid::new_v7(moment).simple()))
    }

    /// The name of a file, if it is one of a segment.
    pub(super) fn of(name: &str) -> Option<Self> {
        let (day, rest) = (name.get(..DAY_CHARS)?, name.get(DAY_CHARS..)?);
        let is_day = day.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        let id = rest.strip_prefix('-')?.strip_suffix(ENDING)?;
        (is_day && id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The day of all its records, by UTC.
    pub(super) fn day(&self) -> &str {
        &self.0[..DAY_CHARS]
    }

    /// When it was begun: the first 48 bits of its identifier are milliseconds. `None` for one that is not ours.
    pub(super) fn began(&self) -> Option<SystemTime> {
        let millis = u64::from_str_radix(self.0.get(DAY_CHARS + 1..DAY_CHARS + 13)?, 16).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_millis(millis))
    }
}

impl std::fmt::Display for SegmentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// `YYYY-MM-DD`, by UTC.
pub(super) fn day(time: SystemTime) -> String {
    let mut moment = moment(time);
    moment.truncate(DAY_CHARS);
    moment
}

/// The segments of a directory in the order in which they began.
pub fn segments(directory: &Path) -> io::Result<Vec<SegmentName>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        names.extend(entry?.file_name().to_str().and_then(SegmentName::of));
    }
    names.sort();
    Ok(names)
}

/// A file to which whole lines are added.
#[derive(Debug)]
pub(super) struct Lines {
    file: Arc<File>,
    /// Bytes of whole lines.
    bytes: u64,
}

/// What is left of lines that could not be written.
#[derive(Debug)]
pub(super) struct Unwritten {
    pub(super) source: io::Error,
    /// Bytes at the end of the file that are no record, where they could not be taken back.
    pub(super) torn: u64,
}

impl Lines {
    /// A file that is not there yet, for its owner alone.
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

    /// Whether somebody took the file away: what is written to it is seen by nobody.
    pub(super) fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
    }

    /// All of it, or nothing: in one write where there is room, so that a process that is killed leaves whole lines and
    /// they can be read while they grow.
    pub(super) fn add(&mut self, lines: &[u8]) -> Result<(), Unwritten> {
        let Err(source) = (&*self.file).write_all(lines) else {
            self.bytes += lines.len() as u64;
            return Ok(());
        };
        let length = self.file.metadata().map_or(self.bytes, |metadata| metadata.len());
        if length == self.bytes || self.file.set_len(self.bytes).is_ok() {
            return Err(Unwritten { source, torn: 0 });
        }
        // A file that can only grow keeps the piece. It is ended with the next line.
        let torn = length.saturating_sub(self.bytes);
        self.bytes = length;
        Err(Unwritten { source, torn })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn names_tell_their_day_and_beginning_and_nothing_else_is_one() {
        let now = SystemTime::now();
        let name = SegmentName::new(now);
        assert_eq!(SegmentName::of(name.as_str()).as_ref(), Some(&name));
        assert_eq!(name.day(), day(now));
        let apart = name.began().expect("a time").duration_since(now).unwrap_or_default();
        assert!(apart < Duration::from_secs(60));
        for other in
            ["", "segments.jsonl", "2026-01-01-12.jsonl", "2026-01-0é-00000000000000000000000000000000.jsonl"]
        {
            assert_eq!(SegmentName::of(other), None, "{other}");
        }
    }
}
