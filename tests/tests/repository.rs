//! Tests of the source code and of SECURITY.md: dependencies, sizes of files, and citations in documents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on panics; tests print tables.

mod layering;
mod security;
