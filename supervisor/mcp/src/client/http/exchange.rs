//! Sends HTTP requests to an upstream server and reads the responses, independent of MCP.

use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use reqwest::{RequestBuilder, Response};
use tokio::time::timeout;

use super::sse_parser::{SseEvent, SseParser};
use crate::client::connection_failure::FailureSignal;
use crate::client::http_error::HttpError;

pub(super) const JSON: &str = "application/json";
pub const EVENTS: &str = "text/event-stream";

/// Maximum size in bytes of the body of an error response. A larger body is ignored.
/// Bound: upstream servers.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long to wait for the first event of a server that may use the deprecated HTTP+SSE transport.
const OLD_TRANSPORT_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum size in bytes of the first event of a server that may use the deprecated HTTP+SSE transport.
const OLD_TRANSPORT_BYTES_MAX: usize = 4 * 1024;

/// Sends HTTP requests with what authorizes them.
pub trait HttpSender: Send + Sync + 'static {
    /// Sends a request, again with other credentials if the server asks for them.
    fn send(&self, request: RequestBuilder) -> BoxFuture<'_, Result<Response, HttpError>>;

    /// Returns a text of the server without secrets.
    fn redact(&self, text: &str) -> String;
}

/// Exchanges HTTP messages with the endpoint of one upstream server.
pub struct HttpExchange {
    pub http: reqwest::Client,
    pub url: url::Url,
    /// `HOST:PORT` for error messages.
    pub host_and_port: String,
    /// Headers of every request, from the configuration.
    pub headers: HeaderMap,
    pub sender: Box<dyn HttpSender>,
    pub failure_signal: FailureSignal,
}

impl HttpExchange {
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, HttpError> {
        self.sender.send(request).await
    }

    /// Reads the body of a response. Before each chunk is added, `fits` is called with the new total size in bytes. If
    /// `fits` returns false, reading stops and the result is `None`.
    pub(super) async fn body(
        &self,
        mut response: Response,
        mut fits: impl FnMut(usize) -> bool,
    ) -> Result<Option<Vec<u8>>, HttpError> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if !fits(body.len() + chunk.len()) => return Ok(None),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Some(body)),
                Err(error) => return Err(HttpError::from_reqwest(&error, &self.host_and_port)),
            }
        }
    }

    /// Reads the body of a response with an HTTP error status. Returns the body, and the error that describes the
    /// response. The body is empty if it is an event stream, is too large or cannot be read.
    pub(super) async fn read_refusal(&self, response: Response, status: StatusCode) -> (String, HttpError) {
        let noted = [LOCATION, RETRY_AFTER].map(|name| header(response.headers(), name.as_str()));
        let body = match ResponseContent::from_response(&response) {
            ResponseContent::Events => Vec::new(),
            _ => {
                let body = self.body(response, |bytes| bytes <= ERROR_BYTES_MAX).await;
                body.ok().flatten().unwrap_or_default()
            }
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        let said: Vec<&str> = noted.iter().flatten().map(String::as_str).chain([body.as_str()]).collect();
        let fault = HttpError::from_status(status, &self.sender.redact(said.join(" ").trim()));
        (body, fault)
    }

    /// Whether the server uses the deprecated HTTP+SSE transport. Such a server answers a GET request with an event
    /// stream whose first event names another endpoint for messages.
    pub(super) async fn is_deprecated(&self) -> bool {
        let request = self.http.get(self.url.clone()).headers(self.headers.clone()).header(ACCEPT, EVENTS);
        let first_event = async {
            let mut response = self.send(request).await.ok()?;
            if !response.status().is_success()
                || ResponseContent::from_response(&response) != ResponseContent::Events
            {
                return None;
            }
            let mut events = SseParser::default();
            loop {
                if let Some(event) = events.next_event() {
                    return Some(event);
                }
                events.feed(&response.chunk().await.ok()??, OLD_TRANSPORT_BYTES_MAX);
            }
        };
        let first = timeout(OLD_TRANSPORT_TIMEOUT, first_event).await.ok().flatten();
        matches!(first, Some(SseEvent::CompleteLine(event)) if event.event.as_deref() == Some("endpoint"))
    }
}

pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The content type of an HTTP response. Only the types that MCP uses are distinguished.
#[derive(PartialEq, Eq)]
pub(super) enum ResponseContent {
    Json,
    Events,
    Other,
}

impl ResponseContent {
    pub(super) fn from_response(response: &Response) -> Self {
        let named = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        match named.split(';').next().unwrap_or_default().trim() {
            name if name.eq_ignore_ascii_case(JSON) => Self::Json,
            name if name.eq_ignore_ascii_case(EVENTS) => Self::Events,
            _ => Self::Other,
        }
    }
}
