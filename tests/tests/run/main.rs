//! `lockhouse run`, as a person and a script meet it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod answers;
mod configuration;
mod errors;
mod input;
mod limits;
mod truth;
mod unusable;
