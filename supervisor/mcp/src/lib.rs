//! MCP connections to upstream servers: reads JSON-RPC messages within limits, and sends requests and waits for their
//! answers. A result stays the JSON text that the server sent, and is parsed once, where it is used.
//!
//! rmcp's types describe the handshake, the requests and the notifications. Its client serves servers over HTTP only: there
//! is no way to it that keeps a result as text, to bound a message before it is parsed, or to call without crossing four tasks.
#![cfg_attr(test, allow(clippy::expect_used))]
#![allow(missing_docs)] // Used only by the crates of this workspace; obvious fields need no comment.

mod connection_failure;
mod conversation;
pub mod inbound_message;
mod line_client;
mod line_transport;
mod line_writer;
pub mod response_id_scan;
mod traffic_limits;

pub use connection_failure::{ConnectionFailure, FailureSignal};
pub use conversation::{Handshake, HandshakeError, ServerMessages, converse, shake_hands};
pub use line_client::{LineClient, LineSubscription, PendingRequest, request_line};
pub use line_transport::{LineTransport, SKIPPED_BYTES_MAX};
pub use traffic_limits::TrafficLimiter;
