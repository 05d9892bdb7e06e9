//! Removes expired segments of the audit log, and stored programs that no remaining record refers to. The index of
//! segments records the removal of each segment. The log's own age decides, and not the wall clock, which may be wrong.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::client_names;
use super::moment::Moment;
use super::program_store;
use super::segment::{SegmentName, day, segments};
use super::segment_index::Index;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The expired lines of the index of segments are removed when they have at least this total size, in bytes. A line
/// expires together with the segments of its day.
const CUT_BYTES_MIN: usize = 1024 * 1024;

/// Maximum number of segments whose lines are written to the index at once, before their files are removed.
const EXPIRED_LINES_MAX: usize = 100;

/// Removes segments that are older than `keep_days` days, and stored programs that last ran more than
/// `keep_days + 1` days ago, both by the log's own age.
pub(super) fn expire(directory: &Path, keys: &Path, keep_days: u32, now: Moment) -> io::Result<()> {
    let mut index = Index::open(directory, keys)?;
    let Some(first_kept) = index.before(now, DAY * keep_days)?.map(day) else { return Ok(()) };
    // One day later than the segments, since a record of the oldest remaining day may still refer to a program.
    let programs = index.before(now, DAY * (keep_days + 1))?;
    let names = segments(directory)?;
    let expired: Vec<&SegmentName> = names.iter().filter(|name| *name.day() < *first_kept).collect();
    if !expired.is_empty() {
        for names in expired.chunks(EXPIRED_LINES_MAX) {
            index.expired(now, names)?;
            names.iter().try_for_each(|name| std::fs::remove_file(directory.join(name.as_str())))?;
        }
        index.cut(directory, now, &first_kept, CUT_BYTES_MIN)?;
        client_names::expire(directory)?;
    }
    programs.map_or(Ok(()), |before| program_store::expire(directory, before))
}
