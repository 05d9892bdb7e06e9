//! Limits on how much of an answer is displayed.

/// Configurable display limits.
#[derive(Clone, Copy, Debug)]
pub struct DisplayLimits {
    /// Maximum bytes of a value, of one part of a stored result, and of a search answer.
    pub part_bytes: usize,
    /// Maximum bytes of stdout, and of stderr.
    pub printed_bytes: usize,
}

/// More calls than `CALLS_MAX` are grouped, into at most `CALL_GROUPS_MAX` groups.
pub(super) const CALLS_MAX: usize = 20;
pub(super) const CALL_GROUPS_MAX: usize = 40;
/// Maximum number of extracted files in one answer, and of their total decoded bytes.
pub(super) const FILES_MAX: usize = 10;
pub(super) const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
