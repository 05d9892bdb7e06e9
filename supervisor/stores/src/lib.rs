//! What Lockhouse keeps for AI clients: results that are too long for an answer, files that programs return, and saved
//! skills.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

pub mod result_files;
pub mod results;
pub mod skills;
