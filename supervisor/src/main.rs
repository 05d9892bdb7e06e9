//! `lockhouse`: arguments in, one command run, its exit status out.
//!
//! Follow an argument of a tool call: [`front`] → [`supervisor`] → [`execution`] ⇄ worker → [`gate`] → [`upstream`].
#![cfg_attr(test, allow(clippy::expect_used))]

mod access;
mod ai_client;
mod audit;
mod catalog;
mod child_stderr;
mod cli;
mod config;
mod control;
mod execution;
mod executions;
mod files;
mod front;
mod gate;
mod json;
mod pool;
mod protections;
mod results;
mod service;
mod sessions;
mod skills;
mod supervisor;
mod telemetry;
mod upstream;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
