//! What must hold for every input. Each function takes bytes, panics where something does not hold, and gives what the
//! input came to: the ordinary tests replay the corpus through the same functions and see that it still reaches all.

mod conversation;
mod frames;
mod input;

use std::collections::BTreeSet;

pub use conversation::conversation;
pub use frames::{frame_decoder, zygote_messages};

/// What an input came to, each kind under its name.
pub type Reached = BTreeSet<String>;
