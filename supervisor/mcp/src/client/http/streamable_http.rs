//! Streamable HTTP: each message is a POST request, and the response to a request is its answer or an event stream.

mod responses;
mod sessions;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE};
use parking_lot::Mutex;
use reqwest::Response;
use rmcp::model::RequestId;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::AbortHandle;

use super::buffer_budget::BufferBudget;
use super::exchange::{HttpExchange, JSON};
use super::header_parameters::HeaderTools;
use super::mcp_session::SessionRenewals;
use super::request_head::{PROTOCOL_VERSION, RequestHead};
use super::request_tasks::RequestTasks;
use super::session_state::{Session, SessionState};
use super::{HttpConnection, HttpLimits, OTHER_REQUESTS_MAX, channel};
use crate::answer_error::ResponseError;
use crate::client::Client;
use crate::client::conversation::ServerInput;
use crate::client::http_error::HttpError;
use crate::client::message_sender::MessageSender;
use crate::client::traffic_limits::TrafficLimiter;
use crate::pending_requests::PendingRequests;

/// What a request accepts as its response.
pub const EITHER: &str = "application/json, text/event-stream";

/// Sends messages to a server over streamable HTTP.
pub struct StreamableHttp(Arc<Connection>);

struct Connection {
    exchange: HttpExchange,
    held: BufferBudget,
    traffic: TrafficLimiter,
    pending: PendingRequests,
    /// The requests and notifications of the server.
    messages: mpsc::Sender<ServerInput>,
    tools: HeaderTools,
    session: SessionState,
    /// Locked while a session is replaced, so that concurrent requests wait for the same new one.
    renewing: tokio::sync::Mutex<()>,
    renewals: SessionRenewals,
    /// Notified when a new session is begun: the server may have been restarted with other tools.
    changed: Arc<Notify>,
    /// Whether a stream for the server's own messages has been opened successfully. If so, the status 404 for a new
    /// stream means that the MCP session has ended.
    has_streamed: AtomicBool,
    requests: RequestTasks,
    /// The task that reads the stream of the server's own messages.
    stream: Mutex<Option<AbortHandle>>,
    posts: Semaphore,
    /// Limits answers and notifications separately: a call may wait for the answer to a question.
    sends: Semaphore,
}

impl StreamableHttp {
    /// Opens a connection, whose HTTP requests run in tasks of `runtime`. `renewals` limits how often a lost session is
    /// replaced; `changed` is notified when one is.
    pub fn open(
        exchange: HttpExchange,
        limits: HttpLimits,
        renewals: SessionRenewals,
        changed: Arc<Notify>,
        runtime: Handle,
    ) -> HttpConnection {
        let (sender, messages) = channel();
        let traffic = TrafficLimiter::new(exchange.failure_signal.clone());
        let pending = PendingRequests::default();
        let connection = Connection {
            exchange,
            held: BufferBudget::new(limits.message_bytes_max),
            traffic: traffic.clone(),
            pending: pending.clone(),
            messages: sender,
            tools: HeaderTools::default(),
            session: SessionState::default(),
            renewing: tokio::sync::Mutex::default(),
            renewals,
            changed,
            has_streamed: AtomicBool::new(false),
            requests: RequestTasks::new(runtime),
            stream: Mutex::default(),
            posts: Semaphore::new(limits.calls_max + OTHER_REQUESTS_MAX),
            sends: Semaphore::new(OTHER_REQUESTS_MAX),
        };
        let client = Client::new(Arc::new(Self(Arc::new(connection))), traffic, pending);
        HttpConnection { client, messages }
    }
}

impl MessageSender for StreamableHttp {
    fn send_request(&self, id: i64, line: Vec<u8>) -> Result<(), ResponseError> {
        let connection = self.0.clone();
        self.0.requests.start(id, async move { connection.request(id, &line).await });
        Ok(())
    }

    fn cancel_request(&self, id: i64, notification: Vec<u8>) {
        self.0.requests.abort(id);
        // Without a session, the end of the response is the cancellation.
        if self.0.session.initialize().is_some() {
            let connection = self.0.clone();
            self.0.requests.send_cancellation(async move { connection.send(&notification).await });
        }
    }

    fn send(&self, line: Vec<u8>) -> BoxFuture<'_, Result<(), ResponseError>> {
        let connection = self.0.clone();
        self.0.requests.send(async move { connection.send(&line).await })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.requests.abort_all();
        self.0.follow_stream(None);
        let connection = self.0.clone();
        let ending = self.0.requests.runtime().spawn(async move { connection.end_session().await });
        async move { drop(ending.await) }.boxed()
    }
}

impl Connection {
    /// Sends a request, and passes its answer to who waits for it.
    async fn request(self: &Arc<Self>, id: i64, line: &[u8]) {
        let head = RequestHead::parse(line);
        let answered = match self.answered(id, &head, line).await {
            Ok(answered) => answered,
            Err(error) => Some((Err(error), None)),
        };
        if let Some((answer, rest)) = answered {
            let id = RequestId::Number(id);
            self.traffic.take_pending(&id);
            self.pending.complete(&id, answer);
            if let Some(rest) = rest {
                rest.drain().await;
            }
        }
    }

    /// Sends a notification, or an answer to a request of the server.
    async fn send(self: &Arc<Self>, line: &[u8]) -> Result<(), ResponseError> {
        let _permit = self.sends.acquire().await.map_err(|_| ResponseError::Closed)?;
        let (head, session) = (RequestHead::parse(line), self.session.current());
        let response = self.post(&head, &session, line).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.exchange.read_refusal(response, status).await.1.into());
        }
        if head.method() == "notifications/initialized" {
            self.follow_stream(Some(session));
        }
        Ok(())
    }

    /// Posts a message in a session.
    async fn post(
        &self,
        head: &RequestHead<'_>,
        session: &Session,
        line: &[u8],
    ) -> Result<Response, HttpError> {
        let mut headers = self.exchange.headers.clone();
        if let Some(version) = head.protocol_version() {
            headers.insert(PROTOCOL_VERSION, version);
            head.add_headers(&mut headers, &self.tools);
        } else if !head.is_handshake() {
            session.add_headers(&mut headers);
        }
        let request = self.exchange.http.post(self.exchange.url.clone()).headers(headers);
        let body = line.strip_suffix(b"\n").unwrap_or(line).to_vec();
        self.exchange.send(request.header(ACCEPT, EITHER).header(CONTENT_TYPE, JSON).body(body)).await
    }
}
