//! The transport HTTP+SSE of protocol version 2024-11-05, which MCP has deprecated: the response to a GET request is an
//! event stream, whose event `endpoint` names the URL to which messages are posted. All messages of the server are events
//! of this stream. The stream is the session: when it ends, the connection has failed.

use std::sync::Arc;
use std::time::Instant;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use parking_lot::Mutex;
use reqwest::Response;
use rmcp::model::RequestId;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use url::Url;

use super::buffer_budget::BufferBudget;
use super::event_stream::{SseReader, StreamEnd, StreamItem};
use super::exchange::{EVENTS, HttpExchange, JSON, ResponseContent};
use super::mcp_session::{LOST, LOST_IN_CALL, SessionLoss, SessionRenewals, session_loss};
use super::request_head::RequestHead;
use super::request_tasks::RequestTasks;
use super::{HttpConnection, HttpLimits, OTHER_REQUESTS_MAX, channel};
use crate::answer_error::ResponseError;
use crate::client::Client;
use crate::client::conversation::ServerInput;
use crate::client::http_error::{HttpError, HttpErrorKind};
use crate::client::inbound_message::{NOT_JSON, parse_answer};
use crate::client::message_sender::MessageSender;
use crate::client::traffic_limits::TrafficLimiter;
use crate::pending_requests::PendingRequests;

/// Maximum length in bytes of what the event `endpoint` names.
const ENDPOINT_BYTES_MAX: usize = 4 * 1024;

const NO_STREAM: &str =
    "what it answers is no stream of events: its URL is not that of a server over HTTP+SSE";
const NO_URL: &str = "it named an endpoint for messages that is not a valid URL";
const FOREIGN: &str =
    "it named an endpoint for messages at another origin than that of its URL; nothing was sent there";
const SECOND_ENDPOINT: &str = "it named a second endpoint for messages";
const ENDED: &str = "its event stream ended";
const BROKE_OFF: &str = "its event stream broke off";

/// Sends messages to a server over HTTP+SSE.
pub struct SseTransport(Arc<SseSession>);

/// The URL to which messages are posted, as far as it is known.
#[derive(Clone)]
pub enum PostAddress {
    Awaited,
    Known(Url),
    /// The server named no usable URL, or no stream could be opened.
    Failed(HttpError),
}

/// What the reader of the event stream and the senders of messages share.
struct SseSession {
    exchange: HttpExchange,
    held: BufferBudget,
    traffic: TrafficLimiter,
    pending: PendingRequests,
    renewals: SessionRenewals,
    address: watch::Sender<PostAddress>,
    /// Limits the number of concurrent POST requests.
    posts: Semaphore,
    requests: RequestTasks,
    /// The task that reads the event stream.
    reader: Mutex<JoinSet<()>>,
}

impl SseTransport {
    /// Opens the event stream in a task of `runtime`, on which all requests are sent too. `renewals` limits how often a lost
    /// session is replaced. Also returns the URL to which messages are posted. It changes once, from
    /// [`PostAddress::Awaited`].
    pub fn open(
        exchange: HttpExchange,
        limits: HttpLimits,
        renewals: SessionRenewals,
        runtime: Handle,
    ) -> (HttpConnection, watch::Receiver<PostAddress>) {
        let (sender, messages) = channel();
        let traffic = TrafficLimiter::new(exchange.failure_signal.clone());
        let (pending, address) = (PendingRequests::default(), watch::Sender::new(PostAddress::Awaited));
        let posted_to = address.subscribe();
        let session = Arc::new(SseSession {
            exchange,
            held: BufferBudget::new(limits.message_bytes_max),
            traffic: traffic.clone(),
            pending: pending.clone(),
            renewals,
            address,
            posts: Semaphore::new(limits.calls_max + OTHER_REQUESTS_MAX),
            requests: RequestTasks::new(runtime.clone()),
            reader: Mutex::default(),
        });
        let reading = session.clone();
        session.reader.lock().spawn_on(async move { reading.read(sender).await }, &runtime);
        let client = Client::new(Arc::new(Self(session)), traffic, pending);
        (HttpConnection { client, messages }, posted_to)
    }
}

impl MessageSender for SseTransport {
    fn send_request(&self, id: i64, line: Vec<u8>) -> Result<(), ResponseError> {
        let session = self.0.clone();
        self.0.requests.start(id, async move { session.request(id, line).await });
        Ok(())
    }

    fn cancel_request(&self, id: i64, notification: Vec<u8>) {
        self.0.requests.abort(id);
        let session = self.0.clone();
        self.0.requests.send_cancellation(async move { session.send(notification).await });
    }

    fn send(&self, line: Vec<u8>) -> BoxFuture<'_, Result<(), ResponseError>> {
        let session = self.0.clone();
        self.0.requests.send(async move { session.send(line).await })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.requests.abort_all();
        self.0.reader.lock().abort_all();
        std::future::ready(()).boxed()
    }
}

impl SseSession {
    /// Opens the event stream and reads it until it ends. Then the connection has failed.
    async fn read(&self, messages: mpsc::Sender<ServerInput>) {
        let failure = match self.open_stream().await {
            Ok(events) => {
                self.exchange.failure_signal.fail(self.read_events(events, &messages).await);
                let reason = self.exchange.failure_signal.reason().map(|reason| reason.message);
                HttpError::new(HttpErrorKind::Unreachable, reason.unwrap_or_default(), "")
            }
            Err(fault) => {
                self.exchange.failure_signal.fail(&fault.reason);
                fault
            }
        };
        self.settle_address(PostAddress::Failed(failure));
        // Only now, so that the conversation does not end without the reason.
        drop(messages);
    }

    async fn open_stream(&self) -> Result<SseReader, HttpError> {
        let request = self.exchange.http.get(self.exchange.url.clone());
        let request = request.headers(self.exchange.headers.clone()).header(ACCEPT, EVENTS);
        let response = self.exchange.send(request).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.exchange.read_refusal(response, status).await.1);
        }
        if ResponseContent::from_response(&response) != ResponseContent::Events {
            return Err(HttpError::new(HttpErrorKind::Unusable, NO_STREAM, ""));
        }
        Ok(SseReader::new(response, self.held.share(), self.traffic.clone(), None))
    }

    /// Reads the event stream until it ends, and returns why it ended.
    async fn read_events(&self, mut events: SseReader, messages: &mpsc::Sender<ServerInput>) -> &'static str {
        loop {
            match events.next().await {
                Ok(StreamItem::Answer(id, answer)) => {
                    self.pending.complete(&id, answer.map_err(ResponseError::Refused));
                }
                Ok(StreamItem::Message(message)) => {
                    if messages.send(ServerInput::Message(message)).await.is_err() {
                        return ENDED;
                    }
                }
                Ok(StreamItem::Other(event)) if event.event.as_deref() == Some("endpoint") => {
                    self.accept_endpoint(event.data.as_deref().unwrap_or_default());
                }
                Ok(StreamItem::Other(_)) => {}
                Err(StreamEnd::Ended) => return ENDED,
                Err(StreamEnd::BrokeOff) => return BROKE_OFF,
            }
        }
    }

    /// Takes the URL for messages from the event `endpoint`. A URL that must not be used, or a second one, fails the
    /// connection.
    fn accept_endpoint(&self, named: &str) {
        let failure_signal = &self.exchange.failure_signal;
        match post_url(&self.exchange.url, named) {
            Ok(url) => {
                if !self.settle_address(PostAddress::Known(url)) {
                    failure_signal.fail_for_violation(SECOND_ENDPOINT);
                }
            }
            Err(reason) => {
                failure_signal.fail_for_violation(reason);
                let named = self.exchange.sender.redact(named);
                let fault = HttpError::new(HttpErrorKind::Unusable, reason, &named);
                self.settle_address(PostAddress::Failed(fault));
            }
        }
    }

    /// Sets the address unless it is set already. Returns whether it was set.
    fn settle_address(&self, address: PostAddress) -> bool {
        self.address.send_if_modified(|current| {
            let is_awaited = matches!(current, PostAddress::Awaited);
            if is_awaited {
                *current = address;
            }
            is_awaited
        })
    }

    /// Sends a request. Its answer is an event of the stream.
    async fn request(&self, id: i64, line: Vec<u8>) {
        if let Err(error) = self.post_request(id, line).await {
            self.traffic.take_pending(&RequestId::Number(id));
            self.pending.complete(&RequestId::Number(id), Err(error));
        }
    }

    async fn post_request(&self, id: i64, line: Vec<u8>) -> Result<(), ResponseError> {
        let is_handshake = RequestHead::parse(&line).is_handshake();
        let response = self.post(line).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.refusal(response, status, id, is_handshake).await),
        }
    }

    /// Sends a notification, or an answer to a request of the server.
    async fn send(&self, line: Vec<u8>) -> Result<(), ResponseError> {
        let response = self.post(line).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(self.exchange.read_refusal(response, status).await.1.into()),
        }
    }

    /// Waits until the server has named the URL for messages, and posts a message to it.
    async fn post(&self, line: Vec<u8>) -> Result<Response, ResponseError> {
        let url = self.post_url().await?;
        let _permit = self.posts.acquire().await.map_err(|_| ResponseError::Closed)?;
        let post = self.exchange.http.post(url).headers(self.exchange.headers.clone());
        Ok(self.exchange.send(post.header(CONTENT_TYPE, JSON).body(line)).await?)
    }

    async fn post_url(&self) -> Result<Url, ResponseError> {
        let mut address = self.address.subscribe();
        let is_settled = |address: &PostAddress| !matches!(address, PostAddress::Awaited);
        let address = address.wait_for(is_settled).await.map(|address| address.clone());
        match address {
            Ok(PostAddress::Known(url)) => Ok(url),
            Ok(PostAddress::Failed(fault)) => Err(fault.into()),
            Ok(PostAddress::Awaited) | Err(_) => Err(ResponseError::Closed),
        }
    }

    /// Returns the answer to a request that the server refused with an HTTP error status: a JSON-RPC error in the body, or that
    /// the status failed it. If the server does not know the session any more, the connection has failed, although its stream
    /// is open.
    async fn refusal(
        &self,
        response: Response,
        status: StatusCode,
        id: i64,
        is_handshake: bool,
    ) -> ResponseError {
        let (body, fault) = self.exchange.read_refusal(response, status).await;
        let loss = session_loss(status, &body, Some(id), true).filter(|_| !is_handshake);
        if let Some(loss) = loss {
            let reason = match loss {
                SessionLoss::NotRun => LOST,
                SessionLoss::Unclear => LOST_IN_CALL,
            };
            if self.renewals.admit(Instant::now()) {
                self.exchange.failure_signal.fail(reason);
            }
            return HttpError { reason: reason.to_owned(), ..fault }.into();
        }
        match parse_answer(body.into_bytes()) {
            Err(error) if error.message != NOT_JSON => ResponseError::Refused(error),
            _ => fault.into(),
        }
    }
}

/// Returns the URL that the event `endpoint` names, relative to `base`, the URL of the event stream. Credentials are sent
/// to it, so it must have the same origin, and no other user and password.
fn post_url(base: &Url, named: &str) -> Result<Url, &'static str> {
    let named = named.trim_matches(' ');
    // The parser of URLs would skip line ends and tabs.
    let is_plain = !named.contains(|c: char| c.is_control() || c.is_whitespace());
    if named.is_empty() || named.len() > ENDPOINT_BYTES_MAX || !is_plain {
        return Err(NO_URL);
    }
    let mut url = base.join(named).map_err(|_| NO_URL)?;
    if url.origin() != base.origin() {
        return Err(FOREIGN);
    }
    let credentials = |url: &Url| (url.username().to_owned(), url.password().map(str::to_owned));
    let has_own = credentials(&url) != (String::new(), None) && credentials(&url) != credentials(base);
    let is_set = url.set_username(base.username()).and_then(|()| url.set_password(base.password()));
    if has_own || is_set.is_err() {
        return Err(NO_URL);
    }
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_posted_only_to_the_origin_of_the_stream_and_with_its_credentials() {
        let long = format!("/{}", "x".repeat(ENDPOINT_BYTES_MAX));
        for (base, named, expected) in [
            ("https://h/a/sse", "/messages?s=1", Ok("https://h/messages?s=1")),
            ("https://h/a/sse", "messages", Ok("https://h/a/messages")),
            ("https://h/a/sse", "?s=1", Ok("https://h/a/sse?s=1")),
            ("https://h/a/sse", " /m ", Ok("https://h/m")),
            ("https://h/sse", "https://h:443/m#part", Ok("https://h/m")),
            ("https://h/sse", "HTTPS://H/m", Ok("https://h/m")),
            ("https://h/sse", "//h/m", Ok("https://h/m")),
            ("http://[::1]:8080/sse", "http://[::1]:8080/m", Ok("http://[::1]:8080/m")),
            ("https://u:p@h/sse", "/m", Ok("https://u:p@h/m")),
            ("https://u:p@h/sse", "https://h/m", Ok("https://u:p@h/m")),
            ("https://u:p@h/sse", "https://u:p@h/m", Ok("https://u:p@h/m")),
            ("https://h/sse", "http://h/m", Err(FOREIGN)),
            ("https://h/sse", "https://h:444/m", Err(FOREIGN)),
            ("https://h/sse", "https://h.evil/m", Err(FOREIGN)),
            ("https://h/sse", "https://h@evil/m", Err(FOREIGN)),
            ("https://h/sse", "https:evil/m", Ok("https://h/evil/m")),
            ("https://h/sse", "//evil/m", Err(FOREIGN)),
            ("https://h/sse", "\\\\evil\\m", Err(FOREIGN)),
            ("https://h/sse", "/\\evil/m", Err(FOREIGN)),
            ("https://h/sse", "file:///m", Err(FOREIGN)),
            ("https://h/sse", "data:text/plain,m", Err(FOREIGN)),
            ("http://127.0.0.1/sse", "http://localhost/m", Err(FOREIGN)),
            ("https://h/sse", "https://u@h/m", Err(NO_URL)),
            ("https://h/sse", "https://:p@h/m", Err(NO_URL)),
            ("https://u:p@h/sse", "https://u:other@h/m", Err(NO_URL)),
            ("https://h/sse", "", Err(NO_URL)),
            ("https://h/sse", "/a\n/b", Err(NO_URL)),
            ("https://h/sse", "/a\rb", Err(NO_URL)),
            ("https://h/sse", "/\t/evil/m", Err(NO_URL)),
            ("https://h/sse", "/a b", Err(NO_URL)),
            ("https://h/sse", "https://", Err(NO_URL)),
            ("https://h/sse", &long, Err(NO_URL)),
        ] {
            let url = post_url(&Url::parse(base).expect("a URL"), named);
            assert_eq!(url.as_ref().map(Url::as_str), expected.as_ref().copied(), "{named:?} at {base}");
        }
    }
}
