//! How much of an answer is shown: its numbers, in one place.

/// What is configured.
#[derive(Clone, Copy, Debug)]
pub struct DisplayLimits {
    /// Bytes of a value, of a part of a kept result, and of the answer to a search.
    pub part_bytes: usize,
    /// Bytes of stdout and stderr, each.
    pub printed_bytes: usize,
}

/// More calls than these are grouped, in so many groups.
pub(super) const CALLS_MAX: usize = 20;
pub(super) const CALL_GROUPS_MAX: usize = 40;
/// Files of one answer that are shown as what they are; bytes of them together.
pub(super) const FILES_MAX: usize = 10;
pub(super) const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
