//! One run from its request to its answer.
//!
//! [`supervisor`] wires the parts and answers requests; [`execution`] is one run in one worker; [`sessions`] keeps workers between
//! runs; [`executions`] lists what runs now; [`quotas`] says how much each client may use.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

pub mod execution;
pub mod executions;
pub mod quotas;
pub mod sessions;
pub mod supervisor;
