//! The transport HTTP+SSE of protocol version 2024-11-05, which MCP has deprecated: the response to a GET request is an
//! event stream, whose event `endpoint` names the URL to which messages are posted. All messages of the server are events
//! of this stream. The stream is the session: when it ends, the connection has failed.

use std::sync::Arc;
use std::time::Instant;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use lockhouse_mcp::inbound_message::RxMessage;
use reqwest::Response;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use url::Url;

use super::backlog_limits::BacklogLimiter;
use super::buffer_budget::BufferBudget;
use super::event_stream::EventReader;
use super::exchange::{EVENTS, HttpExchange, JSON, ResponseContent};
use super::mcp_session::{LOST, LOST_IN_CALL, SessionLoss, SessionRenewals, session_loss};
use super::response_decoder::PendingRequest;
use super::{OTHER_REQUESTS_MAX, RawResults};
use crate::definition::ServerLimits;
use crate::http_error::{HttpError, HttpErrorKind};

/// Maximum length in bytes of what the event `endpoint` names.
const ENDPOINT_BYTES_MAX: usize = 4 * 1024;
/// Number of received messages that may wait for rmcp. Each may have the maximum size, so there is only one.
const WAITING_MESSAGES_MAX: usize = 1;

const NO_STREAM: &str =
    "what it answers is no stream of events: its URL is not that of a server over HTTP+SSE";
const NO_URL: &str = "it named an endpoint for messages that is not a valid URL";
const FOREIGN: &str =
    "it named an endpoint for messages at another origin than that of its URL; nothing was sent there";
const SECOND_ENDPOINT: &str = "it named a second endpoint for messages";
const ENDED: &str = "its event stream ended";
const BROKE_OFF: &str = "its event stream broke off";

type Error = StreamableHttpError<HttpError>;

/// The MCP transport HTTP+SSE to an upstream server. Dropping it closes the event stream.
pub(crate) struct SseTransport {
    session: Arc<SseSession>,
    /// The messages of the server. Ends when the event stream has ended.
    messages: mpsc::Receiver<RxMessage>,
    /// The task that reads the event stream.
    reader: JoinSet<()>,
    runtime: Handle,
}

/// The URL to which messages are posted, as far as it is known.
#[derive(Clone)]
pub(crate) enum PostAddress {
    Awaited,
    Known(Url),
    /// The server named no usable URL, or no stream could be opened.
    Failed(HttpError),
}

/// What the reader of the event stream and the senders of messages share.
struct SseSession {
    exchange: HttpExchange,
    headers: HeaderMap,
    held: BufferBudget,
    load: BacklogLimiter,
    raw: RawResults,
    renewals: SessionRenewals,
    address: watch::Sender<PostAddress>,
    /// Limits the number of concurrent POST requests.
    posts: Semaphore,
    /// Messages for rmcp that are no events of the stream.
    other_messages: mpsc::WeakSender<RxMessage>,
}

impl SseTransport {
    /// Opens the event stream in a task of `runtime`, on which all requests are sent too. `headers` are sent with every
    /// request; `renewals` limits how often a lost session is replaced; `raw` is whether results are given to rmcp as raw
    /// text.
    pub(super) fn open(
        exchange: HttpExchange,
        headers: HeaderMap,
        limits: &ServerLimits,
        renewals: SessionRenewals,
        raw: RawResults,
        runtime: Handle,
    ) -> Self {
        let (sender, messages) = mpsc::channel(WAITING_MESSAGES_MAX);
        let session = Arc::new(SseSession {
            load: BacklogLimiter::new(exchange.failure_signal.clone()),
            exchange,
            headers,
            held: BufferBudget::new(limits.message_bytes_max),
            raw,
            renewals,
            address: watch::Sender::new(PostAddress::Awaited),
            posts: Semaphore::new(limits.calls_max + OTHER_REQUESTS_MAX),
            other_messages: sender.downgrade(),
        });
        let (mut reader, reading) = (JoinSet::new(), session.clone());
        reader.spawn_on(async move { reading.read(sender).await }, &runtime);
        Self { session, messages, reader, runtime }
    }

    /// Returns the URL to which messages are posted. It changes once, from [`PostAddress::Awaited`].
    pub(crate) fn post_address(&self) -> watch::Receiver<PostAddress> {
        self.session.address.subscribe()
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message {
            self.session.load.traffic.record_request(request);
        }
        let session = self.session.clone();
        // Dropping the future aborts the request.
        let mut posting = JoinSet::new();
        posting.spawn_on(async move { session.send(message).await }, &self.runtime);
        async move { posting.join_next().await.ok_or(Error::TransportChannelClosed)?? }
    }

    async fn receive(&mut self) -> Option<RxMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.reader.abort_all();
        Ok(())
    }
}

impl SseSession {
    /// Opens the event stream and reads it until it ends. Then the connection has failed.
    async fn read(&self, messages: mpsc::Sender<RxMessage>) {
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

    async fn open_stream(&self) -> Result<EventReader, HttpError> {
        let request = self.exchange.http.get(self.exchange.url.clone());
        let request = request.headers(self.headers.clone()).header(ACCEPT, EVENTS);
        let response = self.exchange.send(request).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.exchange.read_refusal(response, status).await.1);
        }
        if ResponseContent::from_response(&response) != ResponseContent::Events {
            return Err(HttpError::new(HttpErrorKind::Unusable, NO_STREAM, ""));
        }
        let (share, load) = (self.held.share(), self.load.clone());
        Ok(EventReader::of_all_messages(response, share, load, self.raw.clone()))
    }

    /// Reads the event stream until it ends, and returns why it ended.
    async fn read_events(&self, mut events: EventReader, messages: &mpsc::Sender<RxMessage>) -> &'static str {
        loop {
            let event = match events.next().await {
                Some(Ok(event)) => event,
                Some(Err(_)) => return BROKE_OFF,
                None => return ENDED,
            };
            if event.fields.event.as_deref() == Some("endpoint") {
                self.accept_endpoint(event.fields.data.as_deref().unwrap_or_default());
            }
            if let Some(message) = event.message
                && messages.send(message).await.is_err()
            {
                return ENDED;
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
                let named = self.exchange.authority.redact(named);
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

    /// Waits until the server has named the URL for messages, and posts a message to it.
    async fn send(&self, message: ClientJsonRpcMessage) -> Result<(), Error> {
        let request = PendingRequest::from_message(&message);
        let sent = self.post(&message, request.as_ref()).await;
        if let (Err(_), Some(request)) = (&sent, &request) {
            self.load.traffic.take_pending(&request.id);
        }
        if matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) {
            self.load.record_answer();
        }
        sent
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        request: Option<&PendingRequest>,
    ) -> Result<(), Error> {
        let url = self.post_url().await?;
        let _permit = self.posts.acquire().await.map_err(|_| Error::TransportChannelClosed)?;
        let post = self.exchange.http.post(url).headers(self.headers.clone());
        let post = post.header(CONTENT_TYPE, JSON).body(serde_json::to_vec(message)?);
        let response = self.exchange.send(post).await.map_err(Error::Client)?;
        match response.status() {
            // The answer is an event of the stream.
            status if status.is_success() => Ok(()),
            status => self.handle_refusal(response, status, request).await,
        }
    }

    async fn post_url(&self) -> Result<Url, Error> {
        let mut address = self.address.subscribe();
        let is_settled = |address: &PostAddress| !matches!(address, PostAddress::Awaited);
        let address = address.wait_for(is_settled).await.map(|address| address.clone());
        match address {
            Ok(PostAddress::Known(url)) => Ok(url),
            Ok(PostAddress::Failed(fault)) => Err(Error::Client(fault)),
            Ok(PostAddress::Awaited) | Err(_) => Err(Error::TransportChannelClosed),
        }
    }

    /// Handles the refusal of a message with an HTTP error status. If the body is a JSON-RPC error, it answers the request.
    /// If the server does not know the session any more, the connection has failed, although its stream is open.
    async fn handle_refusal(
        &self,
        response: Response,
        status: StatusCode,
        request: Option<&PendingRequest>,
    ) -> Result<(), Error> {
        let (body, fault) = self.exchange.read_refusal(response, status).await;
        let Some(request) = request else { return Err(Error::Client(fault)) };
        let loss = session_loss(status, &body, &request.id, true).filter(|_| !request.method.is_handshake());
        if let Some(loss) = loss {
            let reason = match loss {
                SessionLoss::NotRun => LOST,
                SessionLoss::Unclear => LOST_IN_CALL,
            };
            if self.renewals.admit(Instant::now()) {
                self.exchange.failure_signal.fail(reason);
            }
            return Err(Error::Client(HttpError { reason: reason.to_owned(), ..fault }));
        }
        match (request.decode_error_body(&body, &self.load), self.other_messages.upgrade()) {
            (Some(answer), Some(messages)) => {
                self.load.traffic.take_pending(&request.id);
                messages.send(answer).await.map_err(|_| Error::TransportChannelClosed)
            }
            _ => Err(Error::Client(fault)),
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
