//! What a service says of what it does: figures, the log, `lockhouse status`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod figures;
mod log;
mod status;
mod traces;

/// A door that asks for no proof.
const OPEN: &str = "[http]\nauth = \"none\"\n";
