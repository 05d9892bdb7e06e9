//! Modules that all parts of the supervisor share: identities of AI clients ([`principal`]), the process lifecycle
//! ([`lifecycle`]), files, JSON, secrets, rate limits, telemetry, and what all HTTP servers have in common.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Used only by the crates of this workspace; obvious fields need no comment.

pub mod access_list;
pub mod browser_opening;
pub mod child_stderr;
pub mod client_rate_limiter;
pub mod confined_mark;
pub mod delegated_files;
pub mod directories;
pub mod files;
pub mod http_checks;
pub mod json;
pub mod lifecycle;
pub mod line_buffer;
pub mod localhost_listener;
pub mod log_throttle;
mod new_file;
pub mod own_places;
pub mod path_trust;
pub mod percent;
pub mod principal;
pub mod representable_time;
pub mod secrets;
pub mod tcp_connection;
pub mod telemetry;
pub mod text_files;
pub mod token_bucket;
pub mod unix_accept;
