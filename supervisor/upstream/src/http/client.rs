//! Implements the library rmcp's HTTP client trait for one upstream server: posts messages, opens event streams and
//! ends sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use tokio::sync::Notify;

use super::DEPRECATED;
use super::backlog_limits::BacklogLimiter;
use super::buffer_budget::BufferBudget;
use super::event_stream;
use super::exchange::{EVENTS, HttpExchange, JSON, ResponseContent, header};
use super::mcp_session::{
    LOST, LOST_IN_CALL, SESSION_ID, SessionLoss, SessionRenewals, end_session, session_loss, with_session,
};
use super::response_decoder::{PendingRequest, RequestMethod};
use super::sse_parser::SseItem;
use crate::http_error::{HttpError, HttpErrorKind};
use lockhouse_mcp::inbound_message::{TOO_LARGE, offload_if_large};

/// The header with the protocol version of a request.
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// The first protocol version that has no sessions.
const NEWEST: &str = "2026-07-28";
/// The id with which a refusal is compared that answers no request. No server knows it.
const NO_REQUEST: RequestId = RequestId::Number(i64::MIN);
const LAST_EVENT: &str = "last-event-id";
pub(super) const EITHER: &str = "application/json, text/event-stream";
const RENEWED_RECENTLY: &str = "it does not know the MCP session any more, and a new one was begun less than 10 s ago; the call was not made";
const NO_ENDPOINT: &str =
    "what it answers is neither JSON nor a stream of events: its URL is not that of an MCP endpoint";

type Error = StreamableHttpError<HttpError>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// The HTTP client for one upstream server's endpoint. Clones share its state.
#[derive(Clone)]
pub(crate) struct UpstreamHttpClient(Arc<Inner>);

struct Inner {
    exchange: HttpExchange,
    held: BufferBudget,
    load: BacklogLimiter,
    /// Whether a stream for the server's own messages has been opened successfully. If so, the status 404 for a new
    /// stream means that the MCP session has ended.
    has_streamed: AtomicBool,
    /// Whether the handshake with `initialize` has begun. A later one begins a new session.
    has_initialized: AtomicBool,
    /// The session that the server has refused, if the refused request could not be repeated. rmcp begins a new session
    /// when it sends the next request.
    lost_session: Mutex<Option<String>>,
    renewals: SessionRenewals,
    /// Notified when a new session is begun: the server may have been restarted with other tools.
    changed: Arc<Notify>,
}

impl UpstreamHttpClient {
    pub(super) fn new(
        exchange: HttpExchange,
        bytes_max: usize,
        renewals: SessionRenewals,
        changed: Arc<Notify>,
    ) -> Self {
        let load = BacklogLimiter::new(exchange.failure_signal.clone());
        Self(Arc::new(Inner {
            exchange,
            held: BufferBudget::new(bytes_max),
            load,
            has_streamed: AtomicBool::new(false),
            has_initialized: AtomicBool::new(false),
            lost_session: Mutex::default(),
            renewals,
            changed,
        }))
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let Inner { exchange, held, load, .. } = &*self.0;
        if matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
            load.record_answer();
        }
        let asked = PendingRequest::from_message(message);
        self.check_session(asked.as_ref(), session)?;
        let body = serde_json::to_vec(message)?;
        let is_modern = headers.iter().any(|(name, value)| name == PROTOCOL_VERSION && value == NEWEST);
        let request = exchange.http.post(exchange.url.clone()).headers(headers.into_iter().collect());
        let request = request.header(ACCEPT, EITHER).header(CONTENT_TYPE, JSON).body(body);
        let response = exchange.send(with_session(request, session)).await.map_err(Error::Client)?;
        let status = response.status();
        let Some(asked) = asked else {
            return match status {
                StatusCode::NOT_FOUND if session.is_some() => Err(Error::SessionExpired),
                status if status.is_success() => Ok(StreamableHttpPostResponse::Accepted),
                status => Err(Error::Client(exchange.read_refusal(response, status).await.1)),
            };
        };
        let assigned = header(response.headers(), SESSION_ID);
        if !status.is_success() {
            let (body, fault) = exchange.read_refusal(response, status).await;
            if !asked.method.is_handshake()
                && let Some(loss) = session_loss(status, &body, &asked.id, session.is_some())
            {
                return Err(self.lose_session(loss, session, is_modern));
            }
            return self.handle_error_status(&asked, status, &body, fault, assigned).await;
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        match ResponseContent::from_response(&response) {
            ResponseContent::Events => {
                let stream = event_stream::answers(response, held.share(), Some(asked), load.clone());
                Ok(StreamableHttpPostResponse::Sse(stream, assigned))
            }
            ResponseContent::Json => {
                let mut share = held.share();
                let body = exchange.body(response, |bytes| share.try_hold(bytes)).await;
                let answer = match body.map_err(Error::Client)? {
                    Some(body) => {
                        let (of, load) = (asked.clone(), load.clone());
                        let answer = offload_if_large(body.len(), move || of.decode_body(&body, &load)).await;
                        answer.unwrap_or_else(|| asked.failed(TOO_LARGE))
                    }
                    None => asked.failed(TOO_LARGE),
                };
                Ok(StreamableHttpPostResponse::Json(answer, assigned))
            }
            ResponseContent::Other => {
                let said = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
                Err(Error::Client(HttpError::new(HttpErrorKind::Unusable, NO_ENDPOINT, &said)))
            }
        }
    }

    /// Checks before a message is sent that its session is not lost, and that a new session may be begun.
    fn check_session(&self, asked: Option<&PendingRequest>, session: Option<&str>) -> Result<(), Error> {
        let Inner { has_initialized, lost_session, renewals, changed, .. } = &*self.0;
        match asked.map(|asked| asked.method) {
            Some(RequestMethod::Initialize) => {
                if has_initialized.swap(true, Ordering::Relaxed) {
                    if !renewals.admit(Instant::now()) {
                        return Err(session_error(RENEWED_RECENTLY));
                    }
                    changed.notify_one();
                }
                lost_session.lock().take();
                Ok(())
            }
            Some(_) if session.is_some() && lost_session.lock().as_deref() == session => {
                Err(Error::SessionExpired)
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for a request that the server refused because it does not know `session`. The error makes rmcp
    /// begin a new session and repeat the request, but only if it did not run. In the newest protocol version, which
    /// has no sessions, the server must have been replaced by an older one, so the connection is opened again.
    fn lose_session(&self, loss: SessionLoss, session: Option<&str>, is_modern: bool) -> Error {
        let Inner { exchange, lost_session, renewals, .. } = &*self.0;
        match loss {
            _ if is_modern => {
                if renewals.admit(Instant::now()) {
                    exchange.failure_signal.fail(LOST);
                }
                session_error(LOST)
            }
            SessionLoss::NotRun => Error::SessionExpired,
            SessionLoss::Unclear => {
                *lost_session.lock() = session.map(str::to_owned);
                session_error(LOST_IN_CALL)
            }
        }
    }

    /// Handles a response with an HTTP error status to the request `asked`. If the body is a JSON-RPC error, returns
    /// this error as the server's answer, with `assigned`, the MCP session ID of the response. If the status shows that
    /// the server uses an older protocol version, returns the error that makes rmcp try that version. Otherwise returns
    /// an error, which is `fault` unless the server uses the deprecated transport HTTP+SSE.
    async fn handle_error_status(
        &self,
        asked: &PendingRequest,
        status: StatusCode,
        body: &str,
        fault: HttpError,
        assigned: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let is_absent = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        match asked.decode_error_body(body, &self.0.load) {
            Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, assigned)),
            None if asked.method == RequestMethod::Discover && status.is_client_error() => {
                Ok(StreamableHttpPostResponse::Json(asked.legacy_error(), None))
            }
            None if asked.method == RequestMethod::Initialize
                && is_absent
                && self.0.exchange.is_deprecated().await =>
            {
                Err(Error::Client(HttpError::new(HttpErrorKind::Unusable, DEPRECATED, "")))
            }
            None => Err(Error::Client(fault)),
        }
    }

    async fn open_stream(
        &self,
        session: Option<&str>,
        last_event: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, SseItem>, Error> {
        let Inner { exchange, held, load, has_streamed, renewals, .. } = &*self.0;
        let request = exchange.http.get(exchange.url.clone()).headers(headers.into_iter().collect());
        let mut request = with_session(request.header(ACCEPT, EVENTS), session);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = exchange.send(request).await.map_err(Error::Client)?;
        let status = response.status();
        if status.is_client_error() {
            let (body, _) = exchange.read_refusal(response, status).await;
            let is_lost = session_loss(status, &body, &NO_REQUEST, session.is_some()).is_some();
            if is_lost && has_streamed.load(Ordering::Relaxed) && renewals.admit(Instant::now()) {
                exchange.failure_signal.fail(LOST);
            }
            return Err(Error::ServerDoesNotSupportSse);
        }
        if status.is_success() && ResponseContent::from_response(&response) != ResponseContent::Events {
            return Err(Error::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(Error::Client(HttpError::from_status(status, "")));
        }
        has_streamed.store(true, Ordering::Relaxed);
        Ok(event_stream::answers(response, held.share(), None, load.clone()))
    }
}

fn session_error(reason: &str) -> Error {
    Error::Client(HttpError::new(HttpErrorKind::Answered, reason, ""))
}

// Limits and tokens belong to the endpoint, so the ones that rmcp passes are ignored.
impl StreamableHttpClient for UpstreamHttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        _: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let traffic = &self.0.load.traffic;
        let id = match &message {
            JsonRpcMessage::Request(request) => {
                traffic.record_request(request);
                Some(&request.id)
            }
            _ => None,
        };
        let outcome = self.post(&message, session.as_deref(), headers).await;
        // If a stream begins or the body is empty, the answer is still to come.
        let is_open =
            matches!(outcome, Ok(StreamableHttpPostResponse::Sse(..) | StreamableHttpPostResponse::Accepted));
        if let Some(id) = id.filter(|_| !is_open) {
            traffic.take_pending(id);
        }
        outcome
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, SseItem>, Error> {
        self.open_stream(session.as_deref(), last_event, headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Error> {
        end_session(&self.0.exchange, &session, headers.into_iter().collect()).await;
        Ok(())
    }
}
