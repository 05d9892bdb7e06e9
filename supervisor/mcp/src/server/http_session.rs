//! An MCP session over HTTP, for the protocol versions that have a handshake: one client, whose requests come with HTTP
//! requests of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::request::Parts;
use parking_lot::Mutex;
use rmcp::model::{InitializeRequestParams, ProtocolVersion};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client_message::{ClientMessage, ClientRequest};
use super::connection::{ClientConnection, IdInUse};
use super::dispatch::{begin_request, receive};
use super::event_log::EventLog;
use super::http_response::Events;
use super::lifecycle::RequestHandler;

/// The first protocol version with priming events, which have no message. Older clients fail on them.
const PRIMING_SINCE: ProtocolVersion = ProtocolVersion::V_2025_11_25;
/// How long an answered request can be read again, if the client has lost its connection.
const ANSWER_LIFETIME: Duration = Duration::from_secs(60);
/// Maximum number of answered requests that can be read again, and of the bytes of those that were read.
const ANSWERS_MAX: usize = 32;
const READ_BYTES_MAX: usize = 1024 * 1024;

/// A session. The last clone of its `Arc` ends it, unless [`HttpSession::end`] did.
pub struct HttpSession<H> {
    handler: H,
    connection: ClientConnection,
    /// Messages that belong to no request.
    common: Arc<EventLog>,
    streams: Mutex<Streams>,
    usage: Arc<Mutex<Usage>>,
    _closing: DropGuard,
}

/// The streams of the requests, by their numbers.
#[derive(Default)]
struct Streams {
    next: u64,
    logs: BTreeMap<u64, RequestStream>,
}

struct RequestStream {
    log: Arc<EventLog>,
    /// When it was first seen to be complete.
    completed: Option<Instant>,
}

struct Usage {
    last: Instant,
    /// The number of open event streams.
    streams: usize,
}

impl<H: RequestHandler> HttpSession<H> {
    /// Begins a session, which `closing` ends. With `id_suffix`, the ids of the requests to the client are texts that end with it.
    pub fn new(handler: H, id_suffix: Option<String>, closing: &CancellationToken) -> Self {
        let common = Arc::new(EventLog::default());
        let connection = ClientConnection::with_own_ids(id_suffix, common.clone(), closing.child_token());
        let guard = connection.closing().clone().drop_guard();
        let usage = Arc::new(Mutex::new(Usage { last: Instant::now(), streams: 0 }));
        Self { handler, connection, common, streams: Mutex::default(), usage, _closing: guard }
    }

    /// Continues a session that another process has begun. `client` is what its client said in the handshake.
    pub fn of_client(
        handler: H,
        id_suffix: Option<String>,
        client: InitializeRequestParams,
        head: &Arc<Parts>,
        closing: &CancellationToken,
    ) -> Self {
        let session = Self::new(handler, id_suffix, closing);
        session.connection.set_client(Box::new(client));
        if session.connection.begin() {
            session.handler.begin(&session.connection, Some(head));
        }
        session
    }

    /// Returns what the client said in the handshake. `None` if the handshake has not succeeded.
    pub fn client(&self) -> Option<Arc<InitializeRequestParams>> {
        self.connection.client()
    }

    /// Whether the handshake has succeeded.
    pub fn is_begun(&self) -> bool {
        self.connection.client().is_some()
    }

    /// Ends the session and cancels its requests.
    pub fn end(&self) {
        self.connection.closing().cancel();
    }

    /// Records that the client uses the session.
    pub fn touch(&self) {
        self.usage.lock().last = Instant::now();
    }

    /// Returns when the session was last used; now, if it has open event streams.
    pub fn last_used(&self) -> Instant {
        let usage = self.usage.lock();
        if usage.streams > 0 { Instant::now() } else { usage.last }
    }

    /// Whether the session has open event streams.
    pub fn is_open(&self) -> bool {
        self.usage.lock().streams > 0
    }

    /// Begins to serve a request. Its answer comes with the returned events. The request continues if the client disconnects.
    ///
    /// # Errors
    /// Another request with this id is in flight.
    pub async fn begin(
        &self,
        request: ClientRequest,
        head: Arc<Parts>,
    ) -> Result<BoxStream<'static, Bytes>, IdInUse> {
        let log = Arc::new(EventLog::default());
        let is_handshake = !self.is_begun();
        begin_request(&self.connection, request, self.handler.clone(), log.clone(), Some(head))?;
        if is_handshake {
            log.only_answer().await;
        }
        let number = self.streams.lock().add(log.clone());
        // The client of a handshake has not read which version it is.
        Ok(self.events(&log, Some(number), Some(0), !is_handshake))
    }

    /// Handles a notification, or an answer to a request of the server. `head` is that of the HTTP request that brought it here.
    pub fn receive(&self, message: ClientMessage, head: Option<Arc<Parts>>) {
        receive(&self.connection, message, &self.handler, &head);
    }

    /// Whether this session waits for a message: an answer to one of its requests, or the cancellation of a request in flight.
    pub fn expects(&self, message: &ClientMessage) -> bool {
        self.connection.expects(message)
    }

    /// Returns the events that belong to no request. There is one reader of them; a stream beside it gets none.
    pub fn listen(&self) -> BoxStream<'static, Bytes> {
        self.common_events(None, true)
    }

    /// Returns the events after the one with this id. `None` if no stream has such an event.
    pub fn resume(&self, last_event_id: &str) -> Option<BoxStream<'static, Bytes>> {
        let Some((next, stream)) = last_event_id.split_once('/') else {
            return Some(self.common_events(Some(last_event_id.parse().ok()?), false));
        };
        let (next, number) = (next.parse().ok()?, stream.parse().ok()?);
        let log = self.streams.lock().logs.get(&number)?.log.clone();
        Some(self.events(&log, Some(number), Some(next), false))
    }

    /// Forgets answers that are too old to be read again.
    pub fn forget_answers(&self) {
        self.streams.lock().forget();
    }

    fn common_events(&self, next: Option<usize>, has_priming_event: bool) -> BoxStream<'static, Bytes> {
        // Two clients that take the place of each other would do so for ever.
        if self.common.has_reader() {
            let idle = Events::idle(self.connection.closing().clone());
            return idle.with_guard(OpenStream::new(&self.usage)).into_stream();
        }
        self.events(&self.common, None, next, has_priming_event)
    }

    fn events(
        &self,
        log: &Arc<EventLog>,
        number: Option<u64>,
        next: Option<usize>,
        has_priming_event: bool,
    ) -> BoxStream<'static, Bytes> {
        let ids = number.map(|number| format!("/{number}")).unwrap_or_default();
        let events = Events::new(log.read(next), self.connection.closing().clone()).with_ids(ids);
        let version = self.connection.client().map(|client| client.protocol_version.clone());
        let knows_priming = version.is_some_and(|version| version >= PRIMING_SINCE);
        let events = if has_priming_event && knows_priming { events.with_priming_event() } else { events };
        events.with_guard(OpenStream::new(&self.usage)).into_stream()
    }
}

impl Streams {
    fn add(&mut self, log: Arc<EventLog>) -> u64 {
        self.forget();
        let number = self.next;
        self.next += 1;
        self.logs.insert(number, RequestStream { log, completed: None });
        number
    }

    /// Forgets answers that are too old, too many or too large. The newest are counted first.
    fn forget(&mut self) {
        let (mut answers, mut read_bytes, mut forgotten) = (0, 0, Vec::new());
        for (number, stream) in self.logs.iter_mut().rev().filter(|(_, stream)| stream.log.is_complete()) {
            answers += 1;
            read_bytes += if stream.log.is_read() { stream.log.bytes() } else { 0 };
            let age = stream.completed.get_or_insert_with(Instant::now).elapsed();
            if age >= ANSWER_LIFETIME || answers > ANSWERS_MAX || read_bytes > READ_BYTES_MAX {
                forgotten.push(*number);
            }
        }
        for number in forgotten {
            self.logs.remove(&number);
        }
    }
}

/// Counts an open event stream.
struct OpenStream(Arc<Mutex<Usage>>);

impl OpenStream {
    fn new(usage: &Arc<Mutex<Usage>>) -> Self {
        usage.lock().streams += 1;
        Self(usage.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut usage = self.0.lock();
        usage.streams -= 1;
        usage.last = Instant::now();
    }
}
