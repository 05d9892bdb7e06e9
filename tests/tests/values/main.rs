//! What values of programs are to an AI client: as JSON, cut where they are too long, and kept whole for whoever comes back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod cut;
mod files;
mod hostile;
mod kept;
mod mapping;
