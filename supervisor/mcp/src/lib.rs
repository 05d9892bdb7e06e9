//! MCP connections, for both roles: the client of upstream servers, over the standard streams of a process or over HTTP, and
//! the server for AI clients ([`server`]). Messages are read within limits. A result stays the JSON text that its sender
//! wrote, and is parsed once, where it is used.
//!
//! rmcp's types describe the handshake, the requests and the notifications. Why its client and its server are not used is said
//! in `client`, `http` and `server`.
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Used only by the crates of this workspace; obvious fields need no comment.

mod answer_error;
pub mod client;
mod pending_requests;
pub mod server;

pub use answer_error::AnswerError;
