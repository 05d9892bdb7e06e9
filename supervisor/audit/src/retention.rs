//! Removes expired segments of the audit log, and stored programs that no remaining record refers to. The index of
//! segments records the removal of each segment. The log's own age decides, and not the wall clock, which may be wrong.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::moment::Moment;
use super::program_store;
use super::segment::{day, segments};
use super::segment_index::Index;
use super::signing::SigningKeys;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The expired lines of the index of segments are removed when they have at least this total size, in bytes. A line
/// expires together with the segments of its day.
const CUT_BYTES_MIN: usize = 1024 * 1024;

/// Removes segments that are older than `keep_days` days, and stored programs that last ran more than
/// `keep_days + 1` days ago, both by the log's own age.
pub(super) fn expire(directory: &Path, secrets: &SigningKeys, keep_days: u32, now: Moment) -> io::Result<()> {
    let mut index = Index::open(directory)?;
    let Some(first_kept) = index.before(now, DAY * keep_days)?.map(day) else { return Ok(()) };
    // One day later than the segments, since a record of the oldest remaining day may still refer to a program.
    let programs = index.before(now, DAY * (keep_days + 1))?;
    if segments(directory)?.iter().any(|name| *name.day() < *first_kept) {
        for name in segments(directory)?.iter().filter(|name| *name.day() < *first_kept) {
            index.expired(now, secrets, name)?;
            std::fs::remove_file(directory.join(name.as_str()))?;
        }
        index.cut(directory, now, secrets, &first_kept, CUT_BYTES_MIN)?;
    }
    programs.map_or(Ok(()), |before| program_store::expire(directory, before))
}
