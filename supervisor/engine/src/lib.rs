//! The engine crate: runs submitted code and answers the requests of fronts, which serve AI clients.
//!
//! [`supervisor`] starts all parts and answers requests. [`execution`] carries out one run in one worker.
//! [`sessions`] keeps workers between runs. [`connect`] connects a front, and
//! [`front_socket`] accepts fronts of other processes. `direct` resolves the tools, resources and
//! prompts that AI clients use without code. [`control_socket`] serves operators. [`active_runs`] lists the active
//! runs. [`client_quotas`] limits each AI client.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Its only users are the crates beside it: names and types say what fields are.

pub mod active_runs;
mod background_runs;
pub mod client_quotas;
pub mod connected_clients;
pub mod control_socket;
mod direct;
pub mod execution;
mod front_connection;
mod front_link;
pub mod front_socket;
mod pending_questions;
pub mod sessions;
pub mod supervisor;
pub mod systemd_notify;
mod unix_acceptor;
mod unix_connections;

pub use front_connection::{connect, connect_http};
pub use unix_acceptor::UnixAcceptor;
