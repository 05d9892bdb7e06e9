//! Invariants of the link between front and engine that must hold for every input. Each function takes bytes, panics when
//! an invariant is violated, and returns the kinds of results that the input produced. Ordinary tests pass the seeds,
//! and changes of them, to the same functions, and check that these inputs cover all kinds of results.

mod frames;
mod greetings;
mod messages;
mod seeds;

use std::collections::BTreeSet;

pub use frames::frames;
pub use greetings::first_messages;
pub use messages::{engine_side, front_side};
pub use seeds::seeds;

/// The names of the kinds of results that an input produced, such as messages and violations.
pub type Coverage = BTreeSet<String>;
