//! The `lockhouse` program: parses the command line, runs one command and returns its exit status.
//!
//! A tool call that code makes passes through these crates: [`front`] → [`supervisor`] → [`execution`] ⇄ worker →
//! [`gate`] → [`upstream`].
#![cfg_attr(test, allow(clippy::expect_used))]

mod cli;
mod config;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
