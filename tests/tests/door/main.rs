//! `lockhouse serve` over HTTP, as AI clients and strangers meet it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod bodies;
mod exposure;
mod hosts;
mod limits;
mod places;
mod sessions;
mod strangers;
mod tls;
mod versions;

/// A door that asks for no proof, for tests of what comes before and after it.
const OPEN: &str = "[http]\nauth = \"none\"\n";
