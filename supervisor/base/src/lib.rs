//! What every part of the supervisor stands on, and no logic of the product: who a client is ([`principal`]), where a process is
//! in its life ([`lifecycle`]), files, JSON, secrets and telemetry.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

pub mod child_stderr;
pub mod client_allowance;
pub mod directories;
pub mod files;
pub mod json;
pub mod language;
pub mod lifecycle;
pub mod log_throttle;
pub mod principal;
pub mod secrets;
pub mod telemetry;
pub mod text_files;
pub mod token_bucket;
