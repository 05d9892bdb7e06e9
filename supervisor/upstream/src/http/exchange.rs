//! One request over HTTP and what comes back, whatever it means to MCP.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::{RequestBuilder, Response};
use tokio::time::timeout;

use super::events::{Event, Events};
use crate::auth::{Authority, Challenge};
use crate::broken::Broken;
use crate::http_fault::HttpFault;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";

/// Bytes of an answer that says why there is none.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long the old transport gets to show itself, and bytes of the event in which it does so.
const OLD_TRANSPORT_TIMEOUT: Duration = Duration::from_secs(3);
const OLD_TRANSPORT_BYTES_MAX: usize = 4 * 1024;

/// What carries requests to one endpoint.
pub(super) struct Exchange {
    pub(super) http: reqwest::Client,
    pub(super) url: url::Url,
    /// `HOST:PORT`
    pub(super) place: String,
    pub(super) authority: Authority,
    pub(super) broken: Broken,
}

impl Exchange {
    /// Sends a request with a token, and once more with another one if the server wants that.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, HttpFault> {
        let again = request.try_clone();
        let token = self.authority.token().await?;
        let response = self.send_with(request, token.as_ref()).await?;
        let Some(challenge) = Challenge::of(&response) else { return Ok(response) };
        let renewed = self.authority.renewed(token, &challenge).await?;
        let response = match again {
            Some(request) => self.send_with(request, Some(&renewed)).await?,
            None => response,
        };
        match Challenge::of(&response) {
            Some(challenge) => Err(self.authority.refused(&challenge)),
            None => Ok(response),
        }
    }

    async fn send_with(
        &self,
        request: RequestBuilder,
        token: Option<&HeaderValue>,
    ) -> Result<Response, HttpFault> {
        let request = match token {
            Some(token) => request.header(AUTHORIZATION, token),
            None => request,
        };
        request.send().await.map_err(|error| {
            let fault = HttpFault::unanswered(&error, &self.place);
            if error.is_connect() {
                self.broken.tell(&fault.reason);
            }
            fault
        })
    }

    /// The body, or `None` if so many bytes do not fit.
    pub(super) async fn body(
        &self,
        mut response: Response,
        mut fits: impl FnMut(usize) -> bool,
    ) -> Result<Option<Vec<u8>>, HttpFault> {
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if !fits(body.len() + chunk.len()) => return Ok(None),
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Ok(Some(body)),
                Err(error) => return Err(HttpFault::unanswered(&error, &self.place)),
            }
        }
    }

    /// The text of an answer that is none, and what it comes to.
    pub(super) async fn refusal(&self, response: Response, status: StatusCode) -> (String, HttpFault) {
        let noted = [LOCATION, RETRY_AFTER].map(|name| header(response.headers(), name.as_str()));
        let body = match Content::of(&response) {
            Content::Events => Vec::new(),
            _ => {
                let body = self.body(response, |bytes| bytes <= ERROR_BYTES_MAX).await;
                body.ok().flatten().unwrap_or_default()
            }
        };
        let body = String::from_utf8_lossy(&body).into_owned();
        let said: Vec<&str> = noted.iter().flatten().map(String::as_str).chain([body.as_str()]).collect();
        let fault = HttpFault::status(status, &self.authority.redact(said.join(" ").trim()));
        (body, fault)
    }

    /// Whether the server answers as one of the old transport does: a stream whose first event names another endpoint.
    pub(super) async fn is_deprecated(&self) -> bool {
        let request = self.http.get(self.url.clone()).header(ACCEPT, EVENTS);
        let first_event = async {
            let mut response = self.send(request).await.ok()?;
            if !response.status().is_success() || Content::of(&response) != Content::Events {
                return None;
            }
            let mut events = Events::new();
            loop {
                if let Some(event) = events.next() {
                    return Some(event);
                }
                events.feed(&response.chunk().await.ok()??, OLD_TRANSPORT_BYTES_MAX);
            }
        };
        let first = timeout(OLD_TRANSPORT_TIMEOUT, first_event).await.ok().flatten();
        matches!(first, Some(Event::Whole(event)) if event.event.as_deref() == Some("endpoint"))
    }
}

pub(super) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// What an answer consists of.
#[derive(PartialEq, Eq)]
pub(super) enum Content {
    Json,
    Events,
    Other,
}

impl Content {
    pub(super) fn of(response: &Response) -> Self {
        let named = header(response.headers(), CONTENT_TYPE.as_str()).unwrap_or_default();
        match named.split(';').next().unwrap_or_default().trim() {
            name if name.eq_ignore_ascii_case(JSON) => Self::Json,
            name if name.eq_ignore_ascii_case(EVENTS) => Self::Events,
            _ => Self::Other,
        }
    }
}
