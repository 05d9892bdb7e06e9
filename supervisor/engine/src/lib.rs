//! One run from its request to its answer.
//!
//! [`supervisor`] wires the parts and answers requests; [`execution`] is one run in one worker; [`sessions`] keeps workers between
//! runs; [`connect`] serves a front; `direct` is what AI clients have of servers directly; [`control`] is the socket of operators;
//! [`executions`] lists what runs now; [`quotas`] says how much each client may use.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

pub mod control;
mod direct;
mod edge;
pub mod execution;
pub mod executions;
pub mod notify;
mod questions;
pub mod quotas;
mod runs;
pub mod sessions;
pub mod supervisor;

pub use edge::connect;
