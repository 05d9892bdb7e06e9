//! `lockhouse`: arguments in, one command run, its exit status out.
//!
//! Follow an argument of a tool call: [`front`] → [`supervisor`] → [`execution`] ⇄ worker → [`gate`] → [`upstream`].
#![cfg_attr(test, allow(clippy::expect_used))]

mod cli;
mod config;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
