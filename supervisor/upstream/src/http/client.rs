//! Messages to one endpoint and their answers, as rmcp's transport asks for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::RequestBuilder;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use tokio::time::timeout;

use super::DEPRECATED;
use super::answers::{Asked, What};
use super::events::SseItem;
use super::exchange::{Content, EVENTS, Exchange, JSON, header};
use super::held::Held;
use super::load::Load;
use super::stream;
use crate::http_fault::{HttpFault, Kind};
use crate::inbound::{TOO_LARGE, reading};

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
pub(super) const EITHER: &str = "application/json, text/event-stream";
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);
const NO_ENDPOINT: &str =
    "what it answers is neither JSON nor a stream of events: its URL is not that of an MCP endpoint";

type Error = StreamableHttpError<HttpFault>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// One endpoint.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    exchange: Exchange,
    held: Held,
    load: Load,
    /// Whether the server has opened a stream of its own, and so ends a session by refusing another.
    has_streamed: AtomicBool,
}

impl Client {
    pub(super) fn new(exchange: Exchange, bytes_max: usize) -> Self {
        let load = Load::new(exchange.broken.clone());
        let held = Held::new(bytes_max);
        Self(Arc::new(Inner { exchange, held, load, has_streamed: AtomicBool::new(false) }))
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let Inner { exchange, held, load, .. } = &*self.0;
        if matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
            load.answered();
        }
        let asked = Asked::of(message);
        let body = serde_json::to_vec(message)?;
        let request = exchange.http.post(exchange.url.clone()).headers(headers.into_iter().collect());
        let request = request.header(ACCEPT, EITHER).header(CONTENT_TYPE, JSON).body(body);
        let response = exchange.send(of_session(request, session)).await.map_err(Error::Client)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(Error::SessionExpired);
        }
        let Some(asked) = asked else {
            return match status.is_success() {
                true => Ok(StreamableHttpPostResponse::Accepted),
                false => Err(Error::Client(exchange.refusal(response, status).await.1)),
            };
        };
        let assigned = header(response.headers(), SESSION);
        if !status.is_success() {
            let (body, fault) = exchange.refusal(response, status).await;
            return self.refused(&asked, status, &body, fault, assigned).await;
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        match Content::of(&response) {
            Content::Events => {
                let stream = stream::answers(response, held.share(), Some(asked), load.clone());
                Ok(StreamableHttpPostResponse::Sse(stream, assigned))
            }
            Content::Json => {
                let mut share = held.share();
                let body = exchange.body(response, |bytes| share.fits(bytes)).await;
                let answer = match body.map_err(Error::Client)? {
                    Some(body) => {
                        let (of, load) = (asked.clone(), load.clone());
                        let answer = reading(body.len(), move || of.answered(&body, &load)).await;
                        answer.unwrap_or_else(|| asked.failed(TOO_LARGE))
                    }
                    None => asked.failed(TOO_LARGE),
                };
                Ok(StreamableHttpPostResponse::Json(answer, assigned))
            }
            Content::Other => {
                let said = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
                Err(Error::Client(HttpFault::new(Kind::Unusable, NO_ENDPOINT, &said)))
            }
        }
    }

    /// What a status means that is not a success.
    async fn refused(
        &self,
        asked: &Asked,
        status: StatusCode,
        body: &str,
        fault: HttpFault,
        assigned: Option<String>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let is_absent = matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED);
        match asked.refused(body, &self.0.load) {
            Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, assigned)),
            None if asked.what == What::Discover && status.is_client_error() => {
                Ok(StreamableHttpPostResponse::Json(asked.is_older(), None))
            }
            None if asked.what == What::Initialize && is_absent && self.0.exchange.is_deprecated().await => {
                Err(Error::Client(HttpFault::new(Kind::Unusable, DEPRECATED, "")))
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
        let Inner { exchange, held, load, has_streamed } = &*self.0;
        let request = exchange.http.get(exchange.url.clone()).headers(headers.into_iter().collect());
        let mut request = of_session(request.header(ACCEPT, EVENTS), session);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = exchange.send(request).await.map_err(Error::Client)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() && has_streamed.load(Ordering::Relaxed) {
            exchange.broken.tell("the server ended the session");
        }
        if status.is_client_error() || (status.is_success() && Content::of(&response) != Content::Events) {
            return Err(Error::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(Error::Client(HttpFault::status(status, "")));
        }
        has_streamed.store(true, Ordering::Relaxed);
        Ok(stream::answers(response, held.share(), None, load.clone()))
    }
}

fn of_session(request: RequestBuilder, session: Option<&str>) -> RequestBuilder {
    match session {
        Some(session) => request.header(SESSION, session),
        None => request,
    }
}

// Limits and tokens are the endpoint's own, so rmcp's are passed over.
impl StreamableHttpClient for Client {
    type Error = HttpFault;

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
                traffic.requested(request);
                Some(&request.id)
            }
            _ => None,
        };
        let outcome = self.post(&message, session.as_deref(), headers).await;
        // Where a stream begins, or nothing is said, the answer is still to come.
        let is_open =
            matches!(outcome, Ok(StreamableHttpPostResponse::Sse(..) | StreamableHttpPostResponse::Accepted));
        if let Some(id) = id.filter(|_| !is_open) {
            traffic.answered(id);
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
        let exchange = &self.0.exchange;
        let request = exchange.http.delete(exchange.url.clone()).headers(headers.into_iter().collect());
        // A server that does not answer is left to forget the session by itself.
        let _ = timeout(DELETE_TIMEOUT, exchange.send(of_session(request, Some(&session)))).await;
        Ok(())
    }
}
