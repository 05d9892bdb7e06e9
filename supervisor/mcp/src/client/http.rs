//! The transports over HTTP: streamable HTTP, and HTTP+SSE, which MCP has deprecated.
//!
//! rmcp's client for streamable HTTP is not used: it takes results as trees of values only, so each would have to be printed
//! once more for it; it has no limits for what a server sends; and it repeats a request in a new session whether it may have run
//! or not. A client of rmcp with raw results, a limit per connection and a decision per refusal would make these modules
//! unnecessary.

mod buffer_budget;
mod event_stream;
mod exchange;
pub mod header_parameters;
mod mcp_session;
mod request_head;
mod request_tasks;
mod session_state;
pub mod sse_parser;
mod sse_transport;
mod streamable_http;

use std::time::Duration;

use tokio::sync::mpsc;

use crate::client::Client;
use crate::client::conversation::{MessageReader, ServerInput};

pub use exchange::{EVENTS, HttpExchange, HttpSender};
pub use mcp_session::SessionRenewals;
pub use sse_transport::{PostAddress, SseTransport};
pub use streamable_http::{EITHER, StreamableHttp};

/// How long an answer or a notification to the server may take.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a cancellation may take. No caller waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of received requests and notifications that may wait to be handled. Each may have 1 MiB.
const WAITING_MESSAGES_MAX: usize = 4;
/// The maximum number of concurrent HTTP requests to one server is the sum of two numbers: the configured maximum of
/// its concurrent calls, and this number for all other requests.
const OTHER_REQUESTS_MAX: usize = 16;

/// Why a streamable HTTP endpoint cannot be used that is one of HTTP+SSE.
pub const DEPRECATED: &str = "it speaks HTTP+SSE, a transport that MCP has deprecated; configure its streamable HTTP endpoint, \
                              usually the same URL with /mcp in place of /sse, or write transport = \"sse\" if it has none";

/// The limits of one connection over HTTP.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Maximum size of one message of the server, in bytes.
    pub message_bytes_max: usize,
    /// Maximum number of concurrent calls.
    pub calls_max: usize,
}

/// A connection over HTTP: its client, and the requests and notifications of the server.
pub struct HttpConnection {
    pub client: Client,
    pub messages: HttpMessages,
}

/// The requests and notifications of a server over HTTP.
pub struct HttpMessages(mpsc::Receiver<ServerInput>);

impl MessageReader for HttpMessages {
    async fn receive(&mut self) -> Option<ServerInput> {
        self.0.recv().await
    }
}

fn channel() -> (mpsc::Sender<ServerInput>, HttpMessages) {
    let (sender, receiver) = mpsc::channel(WAITING_MESSAGES_MAX);
    (sender, HttpMessages(receiver))
}
