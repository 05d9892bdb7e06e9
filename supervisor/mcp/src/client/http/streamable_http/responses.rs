//! The responses to requests over streamable HTTP.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, StatusCode};
use reqwest::Response;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use tokio::time::{sleep, timeout};

use super::super::DEPRECATED;
use super::super::event_stream::{SseReader, StreamItem};
use super::super::exchange::{EVENTS, ResponseContent, header};
use super::super::mcp_session::{LOST, session_loss};
use super::super::request_head::RequestHead;
use super::super::session_state::{SESSION_ID, Session};
use super::Connection;
use crate::answer_error::ResponseError;
use crate::client::conversation::ServerInput;
use crate::client::http_error::{HttpError, HttpErrorKind};
use crate::client::inbound_message::{
    CUT_OFF, JsonRpcResult, NOT_JSON, TOO_LARGE, failed, offload_if_large, parse_answer,
};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// First pause before an event stream that the server closed is opened again.
const REOPEN_MIN: Duration = Duration::from_secs(1);
const REOPEN_MAX: Duration = Duration::from_secs(30);
/// How long to wait for the end of a response after the answer in it, so that its connection can be used again.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
const NO_ENDPOINT: &str =
    "what it answers is neither JSON nor a stream of events: its URL is not that of an MCP endpoint";
const PROBE_REFUSED: &str = "the probe was refused";

/// The pause before an event stream is opened again. It doubles with each wait, up to `REOPEN_MAX`.
struct ReopenPause(Duration);

impl Default for ReopenPause {
    fn default() -> Self {
        Self(REOPEN_MIN)
    }
}

impl ReopenPause {
    /// Waits as long as the server wants, or for the pause if it named no time.
    async fn wait(&mut self, wanted: Option<Duration>) {
        sleep(wanted.unwrap_or(self.0).min(REOPEN_MAX)).await;
        self.0 = REOPEN_MAX.min(self.0 * 2);
    }
}

/// An answer, and the rest of the event stream in which it came.
pub(super) type Answered = (Result<String, ResponseError>, Option<Rest>);

/// What follows after the answer in an event stream.
pub(super) struct Rest(Box<SseReader>);

impl Rest {
    /// Reads to the end of the response for a short time.
    pub(super) async fn drain(mut self) {
        let _ = timeout(DRAIN_TIMEOUT, async { while self.0.next().await.is_ok() {} }).await;
    }
}

impl Connection {
    /// Reads the answer to the request `id` in a response with a success status. Returns `None` if the answer comes in the
    /// stream of the server's own messages.
    pub(super) async fn read_answer(
        &self,
        response: Response,
        id: i64,
        session: &Session,
    ) -> Result<Option<(JsonRpcResult, Option<Rest>)>, ResponseError> {
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(None);
        }
        match ResponseContent::from_response(&response) {
            ResponseContent::Events => Ok(Some(self.answer_in_stream(response, id, session).await)),
            ResponseContent::Json => {
                let mut share = self.held.share();
                let body = self.exchange.body(response, |bytes| share.try_hold(bytes)).await?;
                let Some(body) = body else { return Ok(Some((failed(TOO_LARGE), None))) };
                let answer = offload_if_large(body.len(), move || parse_answer(body)).await;
                Ok(Some((answer.unwrap_or_else(|| failed(TOO_LARGE)), None)))
            }
            ResponseContent::Other => {
                let said = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
                Err(HttpError::new(HttpErrorKind::Unusable, NO_ENDPOINT, &said).into())
            }
        }
    }

    /// Reads an event stream until the answer to the request `id`. If the stream ends before it, asks the server to resume the
    /// stream.
    async fn answer_in_stream(
        &self,
        response: Response,
        id: i64,
        session: &Session,
    ) -> (JsonRpcResult, Option<Rest>) {
        let mut reader = SseReader::new(response, self.held.share(), self.traffic.clone(), Some(id));
        let mut pause = ReopenPause::default();
        loop {
            while let Ok(item) = reader.next().await {
                match item {
                    StreamItem::Answer(answered, answer) if answered == RequestId::Number(id) => {
                        return (answer, Some(Rest(reader.into())));
                    }
                    item => self.dispatch(item).await,
                }
            }
            let last_event = reader.last_event().filter(|_| !self.traffic.has_failed()).map(str::to_owned);
            let Some(last_event) = last_event else { return (failed(CUT_OFF), None) };
            pause.wait(reader.retry()).await;
            match self.open_stream(session, Some(&last_event)).await {
                Ok(Some(response)) => reader.resume(response),
                Ok(None) => return (failed(CUT_OFF), None),
                // No connection for now. The caller waits as long as its call may take.
                Err(_) => {}
            }
        }
    }

    /// Reads the stream of the server's own messages, and opens it again when it ends, as long as the server has one.
    pub(super) async fn read_stream(&self, session: Session) {
        let (mut last_event, mut pause) = (None::<String>, ReopenPause::default());
        loop {
            let mut wanted = None;
            match self.open_stream(&session, last_event.as_deref()).await {
                Ok(Some(response)) => {
                    let mut reader = SseReader::new(response, self.held.share(), self.traffic.clone(), None);
                    while let Ok(item) = reader.next().await {
                        pause = ReopenPause::default();
                        self.dispatch(item).await;
                    }
                    last_event = reader.last_event().map(str::to_owned).or(last_event);
                    wanted = reader.retry();
                }
                Ok(None) => return,
                Err(_) => {}
            }
            if self.traffic.has_failed() {
                return;
            }
            pause.wait(wanted).await;
        }
    }

    /// Passes what came in an event stream to who waits for it.
    async fn dispatch(&self, item: StreamItem) {
        match item {
            StreamItem::Answer(id, answer) => {
                self.pending.complete(&id, answer.map_err(ResponseError::Refused));
                // The response of that request says no more.
                if let RequestId::Number(id) = id {
                    self.requests.abort(id);
                }
            }
            StreamItem::Message(message) => _ = self.messages.send(ServerInput::Message(message)).await,
            StreamItem::Other(_) => {}
        }
    }

    /// Opens the stream of the server's own messages, or resumes another one after `last_event`. Returns `None` if the server
    /// has none.
    async fn open_stream(
        &self,
        session: &Session,
        last_event: Option<&str>,
    ) -> Result<Option<Response>, HttpError> {
        let mut headers = self.exchange.headers.clone();
        session.add_headers(&mut headers);
        let mut request =
            self.exchange.http.get(self.exchange.url.clone()).headers(headers).header(ACCEPT, EVENTS);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = self.exchange.send(request).await?;
        let status = response.status();
        let has_streamed = self.has_streamed.load(Ordering::Relaxed);
        if status.is_client_error() {
            let (body, _) = self.exchange.read_refusal(response, status).await;
            let is_lost = session_loss(status, &body, None, session.is_named()).is_some();
            if is_lost
                && has_streamed
                && self.session.is_current(session)
                && self.renewals.admit(Instant::now())
            {
                self.exchange.failure_signal.fail(LOST);
            }
            return Ok(None);
        }
        if !status.is_success() && (has_streamed || last_event.is_some()) {
            return Err(HttpError::from_status(status, ""));
        }
        if !status.is_success() || ResponseContent::from_response(&response) != ResponseContent::Events {
            return Ok(None);
        }
        self.has_streamed.store(true, Ordering::Relaxed);
        Ok(Some(response))
    }

    /// Returns the answer to a request that the server refused with an HTTP error status, whose body is `body`: a JSON-RPC
    /// error in it, or the error that means an older protocol version. Otherwise returns `fault`, or that the server uses the
    /// deprecated transport HTTP+SSE.
    pub(super) async fn refusal(
        &self,
        head: &RequestHead<'_>,
        status: StatusCode,
        body: &str,
        fault: HttpError,
    ) -> ResponseError {
        let is_absent = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        match (parse_answer(body.as_bytes().to_vec()), head.method()) {
            (Err(error), _) if error.message != NOT_JSON => ResponseError::Refused(error),
            (_, "server/discover") if status.is_client_error() => {
                ResponseError::Refused(ErrorData::new(ErrorCode::INVALID_REQUEST, PROBE_REFUSED, None))
            }
            (_, "initialize") if is_absent && self.exchange.is_deprecated().await => {
                HttpError::new(HttpErrorKind::Unusable, DEPRECATED, "").into()
            }
            _ => fault.into(),
        }
    }
}

/// Returns the ID of the session that a response names.
pub(super) fn named_session(response: &Response) -> Option<http::HeaderValue> {
    response.headers().get(SESSION_ID).cloned()
}
