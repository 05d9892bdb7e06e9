//! Limits on how much of the answer to an execution is displayed.

/// The configurable limits on how much of an answer is displayed.
#[derive(Clone, Copy, Debug)]
pub struct DisplayLimits {
    /// Maximum bytes of a displayed value, of one part of a stored result, and of the answer to a tool search.
    pub part_bytes: usize,
    /// Maximum bytes of a value in an answer that is read by a program and not by a model: some AI clients have a code
    /// mode of their own, whose programs call `run_code`. Not used if `part_bytes` is larger.
    pub program_bytes: usize,
    /// Maximum bytes of displayed stdout, and of displayed stderr.
    pub printed_bytes: usize,
}

/// Maximum number of calls that an answer lists one by one. More calls are grouped by tool and outcome.
pub(super) const CALLS_MAX: usize = 20;
/// Maximum number of groups of calls in an answer. Calls of further groups are left out.
pub(super) const CALL_GROUPS_MAX: usize = 40;
/// Maximum number of files in one answer. Further files are left out.
pub(super) const FILES_MAX: usize = 10;
/// Maximum decoded bytes of all files in one answer. Files beyond this size are left out.
pub(super) const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
