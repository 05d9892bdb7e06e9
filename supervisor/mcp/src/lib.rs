//! MCP connections, for both roles: the client of upstream servers, over the standard streams of a process or over HTTP, and
//! the server for AI clients ([`server`]). Messages are read within limits. A result stays the JSON text that its sender
//! wrote, and is parsed once, where it is used.
//!
//! rmcp's types describe the handshake, the requests and the notifications. Why its client and its server are not used is said
//! in `client`, `http` and `server`.
#![cfg_attr(test, allow(clippy::expect_used, clippy::panic))]
#![allow(missing_docs)] // Used only by the crates of this workspace; obvious fields need no comment.

mod answer_error;
pub mod bounded_list;
mod client;
mod connection_failure;
mod conversation;
pub mod http;
mod http_error;
pub mod inbound_message;
mod line_transport;
mod line_writer;
mod message_sender;
mod pending_requests;
pub mod response_id_scan;
pub mod server;
mod traffic_limits;

pub use answer_error::AnswerError;
pub use client::{Client, PendingRequest, Subscription, request_line};
pub use connection_failure::{ConnectionFailure, FailureSignal};
pub use conversation::{
    Handshake, HandshakeError, ServerInput, MessageReader, ServerMessages, converse, shake_hands,
};
pub use http_error::{HttpError, HttpErrorKind};
pub use line_transport::LineTransport;
