//! The names of the files of an audit log. Crates that must not depend on each other read or copy these files.

/// Name of the index, which lists all segments.
pub const INDEX: &str = "segments.jsonl";
/// Maximum length of a line of the index, in bytes.
pub const INDEX_LINE_BYTES_MAX: u64 = 16 * 1024;
/// The end of the name of each file of a log.
pub const EXTENSION: &str = ".jsonl";
/// Length of the day with which the name of a segment begins.
pub const DAY_CHARS: usize = "2026-01-31".len();
/// Number of digits of the id in the name of a segment.
const ID_DIGITS: usize = 32;

/// Whether a file is a segment according to its name: `DAY-ID.jsonl`.
#[must_use]
pub fn is_segment(name: &str) -> bool {
    let Some((day, rest)) = name.split_at_checked(DAY_CHARS) else { return false };
    let is_day = day.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let id = rest.strip_prefix('-').and_then(|rest| rest.strip_suffix(EXTENSION));
    is_day && id.is_some_and(|id| id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
