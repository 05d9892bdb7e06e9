//! What is too old goes: segments, with a line in the index, and code that nothing recent ran.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::code;
use super::index::Index;
use super::segment::{day, segments};
use super::sign::Secrets;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The index is rewritten when so much of it is about segments that are gone.
const CUT_BYTES_MIN: usize = 1024 * 1024;

/// Removes the segments of days before the last `keep_days`, and their code.
pub(super) fn expire(directory: &Path, secrets: &Secrets, keep_days: u32, now: SystemTime) -> io::Result<()> {
    let Some(first_kept) = now.checked_sub(DAY * keep_days).map(day) else { return Ok(()) };
    if segments(directory)?.iter().any(|name| *name.day() < *first_kept) {
        let mut index = Index::open(directory)?;
        // Others may have done it meanwhile.
        for name in segments(directory)?.iter().filter(|name| *name.day() < *first_kept) {
            index.expired(now, secrets, name)?;
            std::fs::remove_file(directory.join(name.as_str()))?;
        }
        index.cut(directory, now, secrets, &first_kept, CUT_BYTES_MIN)?;
    }
    // A day longer: a record of the last day kept may name it.
    now.checked_sub(DAY * (keep_days + 1)).map_or(Ok(()), |before| code::expire(directory, before))
}
