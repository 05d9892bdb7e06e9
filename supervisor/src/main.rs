//! The `lockhouse` program: parses the command line, runs one command and returns its exit status.
//!
//! A request to run code, and the tool calls of this code, pass through these crates and modules: `lockhouse_front` →
//! `lockhouse_engine::supervisor` → `lockhouse_engine::execution` ⇄ worker → `lockhouse_gate` → `lockhouse_upstream`.
#![cfg_attr(test, allow(clippy::expect_used))]

mod cli;
mod config;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
