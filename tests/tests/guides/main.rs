//! The guides of `docs/`: every program in them runs and answers what stands below it, and they say what the tools say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod blocks;
mod connect;
mod figures;
mod for_models;
mod packaged;
mod pages;
mod programs;
