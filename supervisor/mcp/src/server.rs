//! The MCP server for AI clients, over the standard streams of a process and over HTTP: reads requests, and writes their
//! answers. A result is JSON text, which is written as it is.
//!
//! rmcp's server is not used. A request crosses two tasks and three queues of it, which takes a fifth of the supervisor's
//! CPU time for a run. Its results are typed, so that fields that it does not know are lost. Its HTTP server knows neither
//! the client of a request nor a limit on its sessions, and finds the stream of an answer by the request's id, which two
//! requests of a client may share. A server of rmcp that takes results as text, and an HTTP server that asks for a session's
//! owner, would make this module unnecessary.

pub mod client_message;
mod connection;
mod context;
mod dispatch;
mod event_log;
pub mod http_head;
mod http_response;
mod http_session;
mod lifecycle;
mod lines;
mod output;

pub use connection::{ClientChannel, ClientConnection, IdInUse, ServerRequestError};
pub use context::RequestContext;
pub use http_response::{HttpReply, serve_request};
pub use http_session::HttpSession;
pub use lifecycle::{RequestHandler, method_not_found};
pub use lines::{ID_IN_USE, Lines, serve_lines};
