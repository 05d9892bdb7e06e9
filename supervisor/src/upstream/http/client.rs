//! Requests to one endpoint and their answers, as rmcp's transport asks for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{RequestBuilder, Response};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use tokio::time::timeout;

use super::answers::{Asked, What};
use super::events::{Event, Events, SseItem};
use super::fault::{HttpFault, Kind};
use super::{Broken, DEPRECATED, stream};
use crate::upstream::auth::{Authority, Challenge};
use crate::upstream::definition::{HttpEndpoint, ServerLimits};
use crate::upstream::transport::TOO_LARGE;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
pub(super) const EITHER: &str = "application/json, text/event-stream";

/// Bytes of an answer that says why there is none.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long the old transport gets to show itself.
const OLD_TRANSPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Bytes of an event in which the old transport does so.
const OLD_TRANSPORT_BYTES_MAX: usize = 4 * 1024;
const DELETE_TIMEOUT: Duration = Duration::from_secs(1);

type Error = StreamableHttpError<HttpFault>;

/// One endpoint.
#[derive(Clone)]
pub(in crate::upstream) struct Client(Arc<Inner>);

struct Inner {
    http: reqwest::Client,
    url: url::Url,
    /// `HOST:PORT`
    place: String,
    bytes_max: usize,
    authority: Authority,
    broken: Broken,
    /// Whether the server has opened a stream of its own, and so ends a session by refusing another.
    has_streamed: AtomicBool,
}

impl Client {
    pub(super) fn new(
        http: reqwest::Client,
        endpoint: &HttpEndpoint,
        limits: &ServerLimits,
        authority: Authority,
        broken: Broken,
    ) -> Self {
        Self(Arc::new(Inner {
            http,
            url: endpoint.url.clone(),
            place: endpoint.place(),
            bytes_max: limits.message_bytes_max,
            authority,
            broken,
            has_streamed: AtomicBool::new(false),
        }))
    }

    /// Sends a request with a token, and once more with another one if the server wants that.
    async fn send(&self, request: RequestBuilder) -> Result<Response, HttpFault> {
        let Inner { authority, .. } = &*self.0;
        let again = request.try_clone();
        let token = authority.token().await?;
        let response = self.send_with(request, token.as_ref()).await?;
        let Some(challenge) = Challenge::of(&response) else { return Ok(response) };
        let renewed = authority.renewed(token, &challenge).await?;
        let response = match again {
            Some(request) => self.send_with(request, Some(&renewed)).await?,
            None => response,
        };
        match Challenge::of(&response) {
            Some(challenge) => Err(authority.refused(&challenge)),
            None => Ok(response),
        }
    }

    async fn send_with(
        &self,
        request: RequestBuilder,
        token: Option<&HeaderValue>,
    ) -> Result<Response, HttpFault> {
        let request = match token {
            Some(token) => request.header(http::header::AUTHORIZATION, token),
            None => request,
        };
        request.send().await.map_err(|error| {
            let fault = HttpFault::unanswered(&error, &self.0.place);
            if error.is_connect() {
                self.0.broken.tell(&fault.reason);
            }
            fault
        })
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let asked = Asked::of(message);
        let body = serde_json::to_vec(message)?;
        let request = self.0.http.post(self.0.url.clone()).headers(headers.into_iter().collect());
        let request = request.header(ACCEPT, EITHER).header(CONTENT_TYPE, JSON).body(body);
        let response = self.send(of_session(request, session)).await.map_err(Error::Client)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(Error::SessionExpired);
        }
        let assigned = header(response.headers(), SESSION);
        let Some(asked) = asked else {
            return match status.is_success() {
                true => Ok(StreamableHttpPostResponse::Accepted),
                false => Err(Error::Client(self.refusal(response, status).await.1)),
            };
        };
        if !status.is_success() {
            let (body, fault) = self.refusal(response, status).await;
            return match asked.refused(&body) {
                Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, assigned)),
                None if asked.what == What::Discover && status.is_client_error() => {
                    Ok(StreamableHttpPostResponse::Json(asked.is_older(), None))
                }
                None if asked.what == What::Initialize && is_absent(status) && self.is_deprecated().await => {
                    Err(Error::Client(HttpFault::new(Kind::Unusable, DEPRECATED, "")))
                }
                None => Err(Error::Client(fault)),
            };
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        match Content::of(&response) {
            Content::Events => {
                let stream = stream::answers(response, self.0.bytes_max, Some(asked));
                Ok(StreamableHttpPostResponse::Sse(stream, assigned))
            }
            Content::Json => {
                let answer = match self.body(response, self.0.bytes_max).await? {
                    Some(body) => asked.answered(&body),
                    None => asked.failed(TOO_LARGE),
                };
                Ok(StreamableHttpPostResponse::Json(answer, assigned))
            }
            Content::Other => {
                let words = "what it answers is neither JSON nor a stream of events: its URL is not that of an MCP endpoint";
                let said = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
                Err(Error::Client(HttpFault::new(Kind::Unusable, words, &said)))
            }
        }
    }

    /// The body, or `None` if it is over the limit.
    async fn body(&self, mut response: Response, bytes_max: usize) -> Result<Option<Vec<u8>>, Error> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > bytes_max => return Ok(None),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Some(body)),
                Err(error) => return Err(Error::Client(HttpFault::unanswered(&error, &self.0.place))),
            }
        }
    }

    /// The text of an answer that is none, and what it comes to.
    async fn refusal(&self, response: Response, status: StatusCode) -> (String, HttpFault) {
        let noted = [LOCATION, RETRY_AFTER].map(|name| header(response.headers(), name.as_str()));
        let is_text = Content::of(&response) != Content::Events;
        let body = match is_text {
            true => self.body(response, ERROR_BYTES_MAX).await.ok().flatten().unwrap_or_default(),
            false => Vec::new(),
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        let said = noted.into_iter().flatten().chain([body.clone()]).collect::<Vec<_>>().join(" ");
        let fault = HttpFault::status(status, &self.0.authority.redact(said.trim()));
        (body, fault)
    }

    /// Whether the server answers as one of the old transport does: a stream whose first event names another endpoint.
    async fn is_deprecated(&self) -> bool {
        let request = self.0.http.get(self.0.url.clone()).header(ACCEPT, EVENTS);
        let first_event = async {
            let mut response = self.send(request).await.ok()?;
            if !response.status().is_success() || Content::of(&response) != Content::Events {
                return None;
            }
            let mut events = Events::new(OLD_TRANSPORT_BYTES_MAX);
            loop {
                if let Some(event) = events.next() {
                    return Some(event);
                }
                events.feed(&response.chunk().await.ok()??);
            }
        };
        let first = timeout(OLD_TRANSPORT_TIMEOUT, first_event).await.ok().flatten();
        matches!(first, Some(Event::Whole(event)) if event.event.as_deref() == Some("endpoint"))
    }

    async fn open_stream(
        &self,
        session: Option<&str>,
        last_event: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, SseItem>, Error> {
        let request = self.0.http.get(self.0.url.clone()).headers(headers.into_iter().collect());
        let mut request = of_session(request.header(ACCEPT, EVENTS), session);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let response = self.send(request).await.map_err(Error::Client)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && session.is_some() && self.0.has_streamed.load(Ordering::Relaxed)
        {
            self.0.broken.tell("the server ended the session");
        }
        if status.is_client_error() || (status.is_success() && Content::of(&response) != Content::Events) {
            return Err(Error::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(Error::Client(HttpFault::status(status, "")));
        }
        self.0.has_streamed.store(true, Ordering::Relaxed);
        Ok(stream::answers(response, self.0.bytes_max, None))
    }
}

fn of_session(request: RequestBuilder, session: Option<&str>) -> RequestBuilder {
    match session {
        Some(session) => request.header(SESSION, session),
        None => request,
    }
}

fn is_absent(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// What an answer consists of.
#[derive(PartialEq, Eq)]
enum Content {
    Json,
    Events,
    Other,
}

impl Content {
    fn of(response: &Response) -> Self {
        let named = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        match named.split(';').next().unwrap_or_default().trim() {
            name if name.eq_ignore_ascii_case(JSON) => Self::Json,
            name if name.eq_ignore_ascii_case(EVENTS) => Self::Events,
            _ => Self::Other,
        }
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
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.post(&message, session.as_deref(), headers).await
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, SseItem>, Error> {
        self.open_stream(session.as_deref(), last_event, headers).await
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let request = self.0.http.delete(self.0.url.clone()).headers(headers.into_iter().collect());
        // A server that does not answer is left to forget the session by itself.
        let _ = timeout(DELETE_TIMEOUT, self.send(of_session(request, Some(&session)))).await;
        Ok(())
    }
}
