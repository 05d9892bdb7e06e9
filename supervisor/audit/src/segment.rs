//! A segment: one file of the audit log, and its name.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use lockhouse_base::audit_files::{DAY_CHARS, EXTENSION, is_segment};

use super::hash_chain::timestamp;

/// Name of a segment (a file of the audit log), `DAY-UUID.jsonl`. The names sort by the start times of the segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName(String);

impl SegmentName {
    /// Creates a name for a segment that starts at the time `now`.
    pub(super) fn new(now: SystemTime) -> Self {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let timestamp = uuid::Timestamp::from_unix(uuid::NoContext, since.as_secs(), since.subsec_nanos());
        Self(format!("{}-{}{EXTENSION}", day(now), uuid::Uuid::new_v7(timestamp).simple()))
    }

    /// Parses a file name. Returns `None` if the file is not a segment (a file of the audit log) according to its name.
    pub fn parse(name: &str) -> Option<Self> {
        is_segment(name).then(|| Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the UTC day on which all records of the segment were written, as `YYYY-MM-DD`.
    pub(super) fn day(&self) -> &str {
        &self.0[..DAY_CHARS]
    }

    /// Returns the time at which the segment was started, with millisecond precision. The time comes from
    /// the first 48 bits of the UUID in the segment's name. `None` if these bits contain no valid time.
    pub(super) fn started_at(&self) -> Option<SystemTime> {
        let millis = u64::from_str_radix(self.0.get(DAY_CHARS + 1..DAY_CHARS + 13)?, 16).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(std::time::Duration::from_millis(millis))
    }
}

impl std::fmt::Display for SegmentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Formats a time as `YYYY-MM-DD`, in UTC.
pub(super) fn day(time: SystemTime) -> String {
    let mut timestamp = timestamp(time);
    timestamp.truncate(DAY_CHARS);
    timestamp
}

/// Returns the names of the segments in a directory, in order of their start times.
pub fn segments(directory: &Path) -> io::Result<Vec<SegmentName>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        names.extend(entry?.file_name().to_str().and_then(SegmentName::parse));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn segment_names_contain_day_and_start_time() {
        let now = SystemTime::now();
        let name = SegmentName::new(now);
        assert_eq!(SegmentName::parse(name.as_str()).as_ref(), Some(&name));
        assert_eq!(name.day(), day(now));
        let apart = name.started_at().expect("a time").duration_since(now).unwrap_or_default();
        assert!(apart < Duration::from_secs(60));
        for other in
            ["", "segments.jsonl", "2026-01-01-12.jsonl", "2026-01-0é-00000000000000000000000000000000.jsonl"]
        {
            assert_eq!(SegmentName::parse(other), None, "{other}");
        }
    }
}
