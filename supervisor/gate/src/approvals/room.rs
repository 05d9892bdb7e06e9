//! How much room the arguments of a call have in a prompt.

use serde::Serialize;

use super::visible::{Excerpt, compact};

/// Characters for the arguments of all calls of a prompt, and of one call in a table at least.
pub(super) const ROOM: usize = 4_000;
pub(super) const ROOM_MIN: usize = 160;
/// What a name costs besides its characters.
pub(super) const NAME_OVERHEAD: usize = 10;
/// How deep members are shown one by one.
pub(super) const DEPTH_MAX: usize = 3;
/// Elements of a list that can be shown one by one.
pub(super) const ELEMENTS_MAX: usize = ROOM / 2 / NAME_OVERHEAD;

/// Characters of the value as compact JSON, or one more than `max`.
pub(super) fn width(value: &impl Serialize, max: usize) -> usize {
    let Excerpt { text, left_out } = compact(value, max);
    if left_out > 0 { max + 1 } else { text.chars().count().min(max + 1) }
}
