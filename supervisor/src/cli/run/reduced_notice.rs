//! Says on a terminal which protections of the sandbox this host does not have: once a day, and when they change.

use std::time::SystemTime;

use lockhouse_base::{directories, files};

/// The file in the cache directory with what was said last.
const FILE: &str = "reduced-sandbox";
/// Maximum size of that file in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const SECONDS_PER_DAY: u64 = 86_400;

/// Prints what is missing, unless it was printed today.
pub(super) fn print(missing: &[String]) {
    if missing.is_empty() || was_said(missing) {
        return;
    }
    for one in missing {
        eprintln!("lockhouse: reduced sandbox: {one}");
    }
}

/// Whether the same was said today. Remembers it otherwise; where it cannot be remembered, it is said each time.
fn was_said(missing: &[String]) -> bool {
    let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
        / SECONDS_PER_DAY;
    let now = format!("day {today}\n{}\n", missing.join("\n"));
    let Some(path) = directories::cache().map(|cache| cache.join(FILE)) else { return false };
    let before = files::read_bounded(&path, FILE_BYTES_MAX).ok().flatten();
    if before.as_deref() == Some(&now) {
        return true;
    }
    if let Err(error) = files::replace(&path, now.as_bytes()) {
        tracing::debug!("cannot remember in {} what was said: {error}", path.display());
    }
    false
}
