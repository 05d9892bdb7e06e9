//! Invariants of the protocol that must hold for every input. Each function takes bytes, panics when an invariant is
//! violated, and returns the kinds of results that the input produced. Ordinary tests pass the seeds, and changes of them, to
//! the same functions, and check that these inputs cover all kinds of results.

mod conversation;
mod frames;
mod input;
mod seeds;

use std::collections::BTreeSet;

pub use conversation::conversation;
pub use frames::{frame_decoder, zygote_messages};
pub use seeds::seeds;

/// The names of the kinds of results that an input produced, such as actions, violations and message types.
pub type Coverage = BTreeSet<String>;
