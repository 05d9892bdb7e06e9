//! `lockhouse serve`, as an AI client meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // A test that cannot go on should end loudly.

mod arguments;
mod http;
mod login;
mod protocol;
mod results;
mod truncation;
