//! Invariants of the protocol that must hold for every input. Each function takes bytes, panics when an invariant is
//! violated, and returns the kinds of results that the input produced. Ordinary tests replay the corpus through the same
//! functions and check that the corpus still covers all kinds of results.
//!
//! `make fuzz` stores its findings in `fuzz/found`. To merge them into the corpus, copy the corpus there and run in the
//! folder `protocol`: `cargo +nightly fuzz cmin TARGET fuzz/found/TARGET -- -set_cover_merge=1 -use_counters=0 -max_len=120`.
//! This command keeps the fewest inputs with the same coverage; they are the new corpus. Keep the files `boundary-…`
//! too; `examples/seeds.rs` says why.

mod conversation;
mod frames;
mod input;

use std::collections::BTreeSet;

pub use conversation::conversation;
pub use frames::{frame_decoder, zygote_messages};

/// The names of the kinds of results that an input produced, such as actions, violations and message types.
pub type Coverage = BTreeSet<String>;
