//! Invariants of the protocol that must hold for every input. Each function takes bytes, panics when an invariant is
//! violated, and returns the kinds of results that the input produced. Ordinary tests replay the corpus through the same
//! functions and check that it still covers all kinds.
//!
//! `make fuzz` stores its findings in `fuzz/found`. To merge them into the corpus, copy the corpus there and run in the
//! folder `protocol`: `cargo +nightly fuzz cmin TARGET fuzz/found/TARGET -- -set_cover_merge=1 -use_counters=0 -max_len=120`.
//! The remaining inputs, the fewest with the same coverage, are the new corpus. Keep the files `boundary-…`: see
//! `examples/seeds.rs`.

mod conversation;
mod frames;
mod input;

use std::collections::BTreeSet;

pub use conversation::conversation;
pub use frames::{frame_decoder, zygote_messages};

/// The names of the kinds of results that an input produced, such as actions, violations and message types.
pub type Coverage = BTreeSet<String>;
