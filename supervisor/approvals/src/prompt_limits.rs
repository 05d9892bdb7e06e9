//! Limits for the size of the arguments that approval prompts display.

use serde::Serialize;

use super::untrusted_text::{Excerpt, compact_json};

/// Maximum number of displayed characters of the arguments of all calls of a prompt together.
/// Bound: approvals and questions.
pub(super) const ARGUMENT_CHARS_MAX: usize = 4_000;
/// Minimum number of displayed characters that each call's arguments may use in a prompt that shows several
/// calls.
pub(super) const ARGUMENT_CHARS_MIN: usize = 160;
/// Number of characters that displaying an argument name takes in addition to the name itself: quotation
/// marks, separators and indentation.
pub(super) const NAME_OVERHEAD_CHARS: usize = 10;
/// Maximum nesting depth of objects and lists whose members a prompt displays on lines of their own.
pub(super) const DEPTH_MAX: usize = 3;
/// Maximum number of elements of one list that a prompt displays on lines of their own.
pub(super) const ELEMENTS_MAX: usize = ARGUMENT_CHARS_MAX / 2 / NAME_OVERHEAD_CHARS;

/// Returns the length of a value as compact JSON, in characters; `max + 1` if it is longer than `max`.
pub(super) fn json_chars(value: &impl Serialize, max: usize) -> usize {
    let Excerpt { text, left_out } = compact_json(value, max);
    if left_out > 0 { max + 1 } else { text.chars().count().min(max + 1) }
}
