//! What must hold for every input. Each function takes bytes, panics where something does not hold, and gives what the
//! input came to: the ordinary tests replay the corpus through the same functions and see that it still reaches all.
//!
//! `make fuzz` keeps what it finds apart. To take it into the corpus, copy the corpus to it and, from the folder
//! `protocol`: `cargo +nightly fuzz cmin TARGET fuzz/found/TARGET -- -set_cover_merge=1 -use_counters=0 -max_len=120`,
//! which leaves the fewest inputs that cover as much: the new corpus. Files named `boundary-…` stay: see `examples/seeds.rs`.

mod conversation;
mod frames;
mod input;

use std::collections::BTreeSet;

pub use conversation::conversation;
pub use frames::{frame_decoder, zygote_messages};

/// What an input came to, each kind under its name.
pub type Reached = BTreeSet<String>;
