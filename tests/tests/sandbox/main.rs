//! The seal, from inside and from outside: what code tries, what it still can do, and what the kernel says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod ablation;
mod confinement;
mod imports;
mod isolation;
mod libraries;
mod outside;
mod programs;
mod protections;
mod sweep;
mod world;
