//! The `lockhouse` program: parses the command line, runs one command and returns its exit status.
//!
//! The path of a tool call through the crates: [`front`] → [`supervisor`] → [`execution`] ⇄ worker → [`gate`] →
//! [`upstream`].
#![cfg_attr(test, allow(clippy::expect_used))]

mod cli;
mod config;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
