//! MCP connections, for both roles: the client of upstream servers and the server for AI clients.
//!
//! # Parts
//!
//! - [`client`]: requests with their ids, the answers to them, cancellation and subscriptions. `client/conversation.rs`
//!   has the handshake and the server's own requests.
//! - `client/line_transport.rs` and `client/line_writer.rs` are standard input and output. [`client::http`] is
//!   streamable HTTP and the deprecated HTTP+SSE. `client/message_sender.rs` is what all of them do.
//! - [`client::inbound_message`] classifies a message before it is parsed, [`client::response_id_scan`] finds the id of
//!   a response that is too large, and `client/traffic_limits.rs` limits what a server sends unasked.
//! - [`server`]: the handshake, and what a protocol version permits (`lifecycle.rs`); requests in flight and questions
//!   to the client (`connection.rs`); lines (`lines.rs`); HTTP heads, sessions and event streams (`http_head.rs`,
//!   `http_session.rs`, `event_log.rs`). [`server::RequestHandler`] is the trait of what serves the requests.
//! - `pending_requests.rs` has, for both roles, who waits for which answer.
//!
//! # Invariants
//!
//! - Nothing here names a policy, a run, a server's configuration or a message of the edge.
//! - No other crate works around rmcp's connections. rmcp's types describe the handshake, requests and notifications.
//! - No result of a call is parsed on its way. It stays the JSON text that its sender wrote, and is written as it is.
//! - No message is parsed into a tree before its length, its number of values and the length of its id are known.
//! - No request is repeated that may have run. A request of a lost HTTP session is sent again only if the refusal
//!   proves that it did not.
//! - No request is abandoned silently: whoever waits holds a pending request, and when it is dropped, the server is
//!   told.
//!
//! # Decisions
//!
//! - Client and server are our own, over all transports. In rmcp's, a request crosses four or five tasks, a fifth of
//!   the supervisor's CPU time for a run; typed results drop unknown fields; sizes have no configured limits; and HTTP
//!   sessions have no owners. An API of rmcp that takes and returns results as text, with owners of sessions, would
//!   make them unnecessary.
//! - Unsolicited messages have an allowance of bytes. Above it, the server is disconnected and restarted with a delay.
//!   Progress of a call has an allowance of its own; above it, Lockhouse stops reading from the server for a while.
//! - A server is probed for protocol 2026-07-28 first, and then spoken to with `initialize`. Over standard input the
//!   probe may take 15 s or half of the start timeout, because servers load for longer than 10 s.
//! - A line over the limit becomes an error of the call that it answers; otherwise the call would hang.
//! - Tools that use `Mcp-Param-*` headers incorrectly are left out.
#![allow(missing_docs, reason = "only the crates of this workspace use it; obvious fields need no comment")]

mod answer_error;
pub mod client;
mod pending_requests;
pub mod server;

pub use answer_error::ResponseError;
