//! Which crate knows which, which module of a crate knows which, and what is named where. What must not happen does not compile
//! where Cargo and visibility can see to it; the rest is said here, as rules with `never` in them.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod crates;
mod modules;
mod names;
mod paths;
mod source;
mod table;
