//! Limits on how much of the answer to an execution is displayed.

/// The configurable limits on how much of an answer is displayed.
#[derive(Clone, Copy, Debug)]
pub struct DisplayLimits {
    /// Maximum size in bytes of each of these: a displayed value, one part of a stored result, and the answer to a tool
    /// search.
    pub part_bytes: usize,
    /// Maximum bytes of a value in an answer that is read by a program and not by a model: some AI clients have a code
    /// mode of their own, whose programs call `run_code`. Not used if `part_bytes` is larger.
    pub program_bytes: usize,
    /// Maximum size in bytes of displayed stdout. Displayed stderr has the same maximum, separately.
    pub printed_bytes: usize,
}

/// Maximum number of calls that an answer lists one by one. More calls are grouped by tool and outcome.
/// Bound: values and answers.
pub(super) const CALLS_MAX: usize = 20;
/// Maximum number of groups of calls in an answer. Calls of further groups are left out.
pub(super) const CALL_GROUPS_MAX: usize = 40;
/// Maximum number of bytes (as `bytes` of Python) in a value that stay there as base64. More bytes become a file.
pub(super) const BARE_BYTES_MAX: usize = 1_024;
/// Maximum number of files in one answer whose content it contains. Further files are links.
/// Bound: values and answers.
pub(super) const FILES_MAX: usize = 10;
/// Maximum total size of the files in one answer, in decoded bytes. A file that would exceed this total is a
/// link.
/// Bound: values and answers.
pub(super) const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
