//! Invariants of the link between front and engine that must hold for every input. Each function takes bytes, panics when
//! an invariant is violated, and returns the kinds of results that the input produced. Ordinary tests replay the corpus
//! through the same functions and check that the corpus still covers all kinds of results.
//!
//! `make fuzz` stores its findings in `fuzz/found`. The corpus has the seeds that `examples/seeds.rs` writes.

mod frames;
mod messages;

use std::collections::BTreeSet;

pub use frames::frames;
pub use messages::{engine_side, front_side};

/// The names of the kinds of results that an input produced, such as messages and violations.
pub type Coverage = BTreeSet<String>;
