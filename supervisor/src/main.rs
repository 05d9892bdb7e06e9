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
mod directories;
mod execution;
mod executions;
mod files;
mod front;
mod gate;
mod json;
mod language;
mod lifecycle;
mod notify;
mod pool;
mod principal;
mod protections;
mod quotas;
mod results;
mod secrets;
mod sessions;
mod skills;
mod supervisor;
mod telemetry;
mod text_files;
mod token_bucket;
mod upstream;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
