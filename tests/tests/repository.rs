//! Tests of the repository itself: dependencies between crates and modules, the crates and files that ARCHITECTURE.md names,
//! the properties that Lockhouse promises, and the citations and numbers in the security documents and docs/review.md.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod citations;
mod faults;
mod layering;
mod properties;
mod review;
mod security;
mod skew_patch;
