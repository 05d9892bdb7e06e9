//! Answers to HTTP requests: JSON, or an event stream.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::StatusCode;
use http::request::Parts;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion, RequestId};
use tokio_util::sync::CancellationToken;

use super::client_message::ClientRequest;
use super::connection::ClientConnection;
use super::dispatch::begin_request;
use super::event_log::{EventLog, EventLogReader};
use super::lifecycle::RequestHandler;
use super::output::error_text;

/// Interval at which an event stream without events gets a comment, so that it is not taken for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const COMMENT: &[u8] = b":\n\n";
/// How long a client should wait before it opens a closed stream again, in milliseconds.
const RECONNECT_AFTER_MS: u64 = 3_000;
const ENDED: &str =
    "the server ended while it carried this request out: look at what it has done before you send it again";
/// Maximum number of bytes of a message that is copied, so that its event is one part of the body.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// The answer to an HTTP request.
pub enum HttpReply {
    /// 202, without a body.
    Accepted,
    Text(StatusCode, Cow<'static, str>),
    /// 405, with the methods that are allowed.
    NotAllowed(&'static str),
    Json(StatusCode, Bytes),
    Events(BoxStream<'static, Bytes>),
}

impl HttpReply {
    /// Returns a JSON-RPC error. `id` is the id of the refused request, if one is known.
    pub fn error(status: StatusCode, id: Option<RequestId>, error: ErrorData) -> Self {
        Self::Json(status, error_text(id, error).into())
    }
}

/// Serves a request that depends on no handshake and no session. If the client disconnects, the request is cancelled.
pub async fn serve_request(
    request: ClientRequest,
    handler: impl RequestHandler,
    head: Arc<Parts>,
    closing: &CancellationToken,
) -> HttpReply {
    let has_metadata = request.meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty();
    let log = Arc::new(EventLog::default());
    let connection = ClientConnection::new(log.clone(), closing.child_token());
    let guard = connection.closing().clone().drop_guard();
    let id = request.id.clone();
    if begin_request(&connection, request, handler, log.clone(), Some(head)).is_err() {
        return HttpReply::Text(StatusCode::BAD_REQUEST, "the request has an id of another".into());
    }
    let answer = tokio::select! {
        answer = log.only_answer() => answer,
        () = closing.cancelled() => return ended(id),
    };
    match answer {
        Some((answer, error)) => HttpReply::Json(status(error, has_metadata), answer),
        None => {
            let events = Events::new(log.read(Some(0)), connection.closing().clone());
            HttpReply::Events(events.with_guard(guard).into_stream())
        }
    }
}

/// Returns the answer to a request that had begun when the server ended. The status is not 503, after which a balancer may send the
/// request to another host: it may have been carried out.
fn ended(id: RequestId) -> HttpReply {
    HttpReply::error(StatusCode::INTERNAL_SERVER_ERROR, Some(id), ErrorData::internal_error(ENDED, None))
}

/// Returns the HTTP status of an answer with this error code.
fn status(error: Option<ErrorCode>, has_metadata: bool) -> StatusCode {
    match error {
        Some(
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH,
        ) => StatusCode::BAD_REQUEST,
        Some(ErrorCode::INVALID_PARAMS) if !has_metadata => StatusCode::BAD_REQUEST,
        Some(ErrorCode::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

/// An event stream.
pub(super) struct Events<G = ()> {
    reader: Option<EventLogReader>,
    /// The end of the ids of its events; `None` if they have none.
    ids: Option<String>,
    /// Parts of the body that are complete and not sent yet.
    parts: VecDeque<Bytes>,
    /// Ends the stream.
    closing: CancellationToken,
    /// Dropped with the stream.
    _guard: G,
}

impl Events {
    pub(super) fn new(reader: EventLogReader, closing: CancellationToken) -> Self {
        Self { reader: Some(reader), ids: None, parts: VecDeque::new(), closing, _guard: () }
    }

    /// Returns a stream without events.
    pub(super) fn idle(closing: CancellationToken) -> Self {
        Self { reader: None, ids: None, parts: VecDeque::new(), closing, _guard: () }
    }
}

impl<G: Send + 'static> Events<G> {
    pub(super) fn with_guard<H>(self, guard: H) -> Events<H> {
        let Self { reader, ids, parts, closing, _guard: _ } = self;
        Events { reader, ids, parts, closing, _guard: guard }
    }

    /// Gives the events ids that end with `ids`. A client can continue after each of them.
    pub(super) fn with_ids(self, ids: String) -> Self {
        Self { ids: Some(ids), ..self }
    }

    /// Begins the stream with an event without a message, from which a client can continue.
    pub(super) fn with_priming_event(mut self) -> Self {
        let ids = self.ids.as_deref().unwrap_or_default();
        self.parts.push_back(format!("id: 0{ids}\nretry: {RECONNECT_AFTER_MS}\ndata: \n\n").into());
        self
    }

    pub(super) fn into_stream(self) -> BoxStream<'static, Bytes> {
        stream::unfold(self, |mut events| async move { Some((events.next().await?, events)) }).boxed()
    }

    async fn next(&mut self) -> Option<Bytes> {
        if let Some(part) = self.parts.pop_front() {
            return Some(part);
        }
        let reading = async {
            match &mut self.reader {
                Some(reader) => reader.next().await,
                None => std::future::pending().await,
            }
        };
        let message = tokio::select! {
            biased;
            message = reading => message,
            () = self.closing.cancelled() => None,
            () = tokio::time::sleep(KEEP_ALIVE) => return Some(Bytes::from_static(COMMENT)),
        };
        let (number, message) = message?;
        let head = match &self.ids {
            Some(ids) => format!("id: {}{ids}\ndata: ", number + 1),
            None => "data: ".to_owned(),
        };
        if message.len() <= COPIED_BYTES_MAX {
            return Some([head.as_bytes(), &message, b"\n\n"].concat().into());
        }
        self.parts.extend([message, Bytes::from_static(b"\n\n")]);
        Some(head.into())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerConfig;
    use serde_json::{Value, json};

    use super::super::client_message::{ClientMessage, Parameters};
    use super::super::context::RequestContext;
    use super::*;

    /// A server that ends while it carries its first request out.
    #[derive(Clone)]
    struct Server(CancellationToken);

    impl RequestHandler for Server {
        fn info(&self) -> ServerConfig {
            ServerConfig::default()
        }

        async fn serve(&self, _: Parameters, _: &RequestContext) -> Result<String, ErrorData> {
            self.0.cancel();
            std::future::pending().await
        }

        fn begin(&self, _: &ClientConnection, _: Option<&Arc<Parts>>) {}
    }

    #[tokio::test]
    async fn a_request_that_was_begun_is_never_answered_with_503() {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
        });
        let message = json!({
            "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "t", "arguments": {}, "_meta": meta},
        });
        let Ok(ClientMessage::Request(request)) = ClientMessage::parse(message.to_string().as_bytes()) else {
            panic!("it is a request")
        };
        let closing = CancellationToken::new();
        let (head, ()) = http::Request::new(()).into_parts();
        let reply = serve_request(*request, Server(closing.clone()), Arc::new(head), &closing).await;
        let HttpReply::Json(status, body) = reply else { panic!("it is JSON") };
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!((status.as_u16(), &body["id"]), (500, &json!(7)));
        assert_eq!(body["error"]["message"], ENDED);
    }
}
