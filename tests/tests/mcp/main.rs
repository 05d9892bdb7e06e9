//! `lockhouse serve`, as an AI client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A test that cannot go on should end loudly.

mod arguments;
mod asking;
mod http;
mod login;
mod offers;
mod progress;
mod protocol;
mod results;
mod timeouts;
mod truncation;
