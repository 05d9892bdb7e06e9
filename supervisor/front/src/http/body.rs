//! Receives HTTP request bodies, within limits on time, size and memory.
//!
//! The client's rate limit is charged for the received bytes of a body, whatever the outcome of the request, and for
//! its JSON values. A client that has exceeded its rate limit is refused before its next body is parsed. Large bodies
//! are parsed on another thread, one at a time, so that they do not delay other clients.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, StreamExt};
use lockhouse_mcp::server::HttpReply;
use lockhouse_mcp::server::client_message::{ClientMessage, InvalidMessage};
use lockhouse_mcp::server::http_head::has_json;
use lockhouse_messages::{HttpRefusal, Owner};
use rmcp::model::ErrorData;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::body_permits::{BodyPermit, BodyPermits};
use super::connection_timeouts::ConnectionTracker;
use super::counters;
use super::limits::HttpLimits;
use super::message_cost::{MessageFault, cost_of_bytes, parse_message};
use super::reply::reject;
use super::reply::to_response;
use crate::access::{Rejection, RequestAuthenticator};

/// Maximum size in bytes of a small body. A small body is received without a permit and parsed on the event loop.
const SMALL_BODY_BYTES: usize = 64 * 1024;
/// Maximum number of large bodies that are parsed at the same time, each on a thread of its own.
const PARALLEL_PARSES_MAX: usize = 1;
/// Limits on reading and discarding the body of a refused request: on its size, `DISCARD_BODIES_MAX` times the setting
/// `body_bytes`, and on the time, `DISCARD_TIMEOUT`.
const DISCARD_BODIES_MAX: usize = 4;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of bytes of an unauthenticated request's body that are read and discarded. No client is charged for
/// these bytes.
/// Bound: AI clients.
const UNAUTHENTICATED_DISCARD_BYTES_MAX: usize = 256 * 1024;
/// Allows one request body at a time to be discarded, so that discarding many bodies cannot delay other clients.
static DISCARD_LOCK: Semaphore = Semaphore::const_new(1);
/// Header `Retry-After` of a 503 response to a request with a large body, in seconds.
const BUSY_RETRY_AFTER_S: &str = "2";

/// Receives request bodies, and charges the rate limits of their clients.
pub(super) struct BodyReader {
    limits: HttpLimits,
    authenticator: Arc<RequestAuthenticator>,
    /// Permits for receiving large bodies, which bound the memory for bodies.
    permits: BodyPermits,
    parsing: Arc<Semaphore>,
}

/// A request body that was received completely.
struct ReceivedBody {
    body: Vec<u8>,
    /// The permit for a large body. `None` for a small body.
    permit: Option<BodyPermit>,
}

/// Counts the received bytes of a body. When this value is dropped, the client's rate limit is charged for the bytes,
/// even if the body was not received completely.
struct ByteCharge<'a> {
    authenticator: &'a RequestAuthenticator,
    owner: Owner,
    bytes: usize,
}

impl Drop for ByteCharge<'_> {
    fn drop(&mut self) {
        self.authenticator.charge(self.owner, cost_of_bytes(self.bytes));
    }
}

impl BodyReader {
    pub(super) fn new(limits: HttpLimits, authenticator: Arc<RequestAuthenticator>) -> Self {
        let permits = BodyPermits::new(limits.bodies_bytes / limits.body_bytes);
        Self { limits, authenticator, permits, parsing: Arc::new(Semaphore::new(PARALLEL_PARSES_MAX)) }
    }

    async fn receive(
        &self,
        owner: Owner,
        tracker: Option<&ConnectionTracker>,
        headers: &HeaderMap,
        parts: &mut BodyDataStream,
    ) -> Result<ReceivedBody, BodyRejection> {
        let mut deadline = Instant::now() + self.limits.body;
        let content_length =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if content_length.is_some_and(|length: u64| length > self.limits.body_bytes as u64) {
            self.authenticator.check_debt(owner)?;
            return Err(BodyRejection::TooLarge(self.limits.body_bytes));
        }
        let (mut body, mut permit) = (Vec::new(), None);
        let mut charge = ByteCharge { authenticator: &self.authenticator, owner, bytes: 0 };
        while let Some(part) = timeout_at(deadline, parts.next()).await.map_err(|_| BodyRejection::Timeout)? {
            let part: Bytes = part.map_err(|_| BodyRejection::Broken)?;
            charge.bytes += part.len();
            if part.len() > self.limits.body_bytes - body.len() {
                return Err(BodyRejection::TooLarge(self.limits.body_bytes));
            }
            if permit.is_none() && body.len() + part.len() > SMALL_BODY_BYTES {
                // The time spent waiting for a permit does not count: other clients determine it.
                let wait_started = Instant::now();
                permit = Some(self.acquire_permit(owner, tracker).await?);
                deadline += wait_started.elapsed();
                self.authenticator.check_debt(owner)?;
            }
            body.extend_from_slice(&part);
        }
        // Checked before the charge for this body, which may put the client in debt.
        self.authenticator.check_debt(owner)?;
        Ok(ReceivedBody { body, permit })
    }

    /// Waits for a permit for a large body, at most for the time that a body may take to arrive (`body` of
    /// [`HttpLimits`]). After that, and if too many requests of the same connection wait already, fails with
    /// [`BodyRejection::Busy`].
    async fn acquire_permit(
        &self,
        owner: Owner,
        tracker: Option<&ConnectionTracker>,
    ) -> Result<BodyPermit, BodyRejection> {
        let acquiring = self.permits.acquire(owner);
        let mut acquiring = pin!(acquiring);
        if let Some(permit) = acquiring.as_mut().now_or_never() {
            return permit.ok_or(BodyRejection::Broken);
        }
        let _waiting = match tracker.map(ConnectionTracker::begin_permit_wait) {
            Some(None) => return Err(BodyRejection::Busy),
            waiting => waiting,
        };
        timeout(self.limits.body, acquiring)
            .await
            .map_err(|_| BodyRejection::Busy)?
            .ok_or(BodyRejection::Broken)
    }

    /// Refuses a request: discards the rest of its body, for which the client is charged, and returns the response.
    async fn refuse(
        &self,
        owner: Owner,
        refusal: BodyRejection,
        mut parts: BodyDataStream,
        version: Version,
    ) -> Response {
        if refusal.has_unread_body() {
            let mut charge = ByteCharge { authenticator: &self.authenticator, owner, bytes: 0 };
            let bytes_max = DISCARD_BODIES_MAX * self.limits.body_bytes;
            discard(&mut parts, version, bytes_max, |bytes| charge.bytes += bytes).await;
        }
        refusal.into_response(version).await
    }

    /// Receives the body of a request, and parses it if it is a message. Returns `None` if it is none.
    ///
    /// # Errors
    /// The response that refuses the request.
    pub(super) async fn read(
        &self,
        owner: Owner,
        head: &Parts,
        body: Body,
    ) -> Result<Option<ClientMessage>, Response> {
        let mut body = body.into_data_stream();
        let tracker = head.extensions.get::<ConnectionTracker>();
        let received = match self.receive(owner, tracker, &head.headers, &mut body).await {
            Ok(received) => received,
            Err(refusal) => return Err(self.refuse(owner, refusal, body, head.version).await),
        };
        if head.method != Method::POST || !has_json(&head.headers) {
            return Ok(None);
        }
        match self.parse(owner, received).await {
            Ok(message) => Ok(Some(message)),
            Err(refusal) => Err(refusal.into_response(head.version).await),
        }
    }

    async fn parse(&self, owner: Owner, received: ReceivedBody) -> Result<ClientMessage, BodyRejection> {
        let ReceivedBody { body, permit } = received;
        let (authenticator, values_max) = (self.authenticator.clone(), self.limits.body_values);
        let parse = move || {
            let (cost, message) = parse_message(&body, values_max);
            authenticator.charge(owner, cost);
            message
        };
        let message = match permit {
            None => parse(),
            Some(permit) => {
                let parse_permit =
                    self.parsing.clone().acquire_owned().await.map_err(|_| BodyRejection::Broken)?;
                // Both permits are held until parsing ends, even if the client disconnects.
                let work = move || {
                    let _permits = (parse_permit, permit);
                    parse()
                };
                tokio::task::spawn_blocking(work).await.map_err(|_| BodyRejection::Broken)?
            }
        };
        message.map_err(BodyRejection::Message)
    }
}

/// Why a request's body is refused.
#[derive(Debug)]
enum BodyRejection {
    TooLarge(usize),
    Timeout,
    /// No permit for a large body became free in time, or too many requests of the connection already wait for a
    /// permit.
    Busy,
    Broken,
    Message(MessageFault),
    /// The client has exceeded its rate limit.
    Client(Rejection),
}

impl From<Rejection> for BodyRejection {
    fn from(rejection: Rejection) -> Self {
        Self::Client(rejection)
    }
}

impl BodyRejection {
    /// Returns whether the rest of the body must be discarded before the response is sent.
    fn has_unread_body(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Busy | Self::Client(_))
    }

    async fn into_response(self, version: Version) -> Response {
        let is_read = matches!(self, Self::Message(_));
        let mut response = match self {
            Self::Client(rejection) => reject(rejection).await,
            Self::TooLarge(max) => {
                let message =
                    format!("the body is too large: at most {} KiB, body_kib of [http.limits]", max / 1024);
                let error = Box::new(ErrorData::invalid_request(message, None));
                refuse_body(StatusCode::PAYLOAD_TOO_LARGE, InvalidMessage { id: None, error })
            }
            Self::Timeout => {
                counters::count_refusal(HttpRefusal::Timeout);
                (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time").into_response()
            }
            Self::Busy => {
                counters::count_refusal(HttpRefusal::Body);
                let words = "too many large bodies are being received: send this one again later";
                (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, BUSY_RETRY_AFTER_S)], words)
                    .into_response()
            }
            Self::Broken => {
                counters::count_refusal(HttpRefusal::Body);
                (StatusCode::BAD_REQUEST, "the body cannot be read").into_response()
            }
            Self::Message(fault) => {
                let status =
                    if fault.is_size() { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
                refuse_body(status, fault.into())
            }
        };
        // On HTTP/1.1, the unread rest would be taken for the next request. HTTP/2 has a stream per request.
        if !is_read && version != Version::HTTP_2 {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

fn refuse_body(status: StatusCode, InvalidMessage { id, error }: InvalidMessage) -> Response {
    counters::count_refusal(HttpRefusal::Body);
    to_response(HttpReply::error(status, id, *error))
}

/// Reads and discards the rest of an HTTP/1.1 request body, within a limit on bytes and time. A client that sends its
/// whole body before it reads would otherwise get a connection reset instead of the response. Calls `count` with the
/// size of each part that was read. Returns whether the end of the body was reached. Over HTTP/2, this problem does not
/// exist: reads nothing, and returns true.
async fn discard(
    parts: &mut BodyDataStream,
    version: Version,
    bytes_max: usize,
    mut count: impl FnMut(usize),
) -> bool {
    if version == Version::HTTP_2 {
        return true;
    }
    let mut bytes = 0;
    let reading = async {
        let _lock = DISCARD_LOCK.acquire().await;
        while bytes <= bytes_max {
            match parts.next().await {
                Some(Ok(part)) => {
                    count(part.len());
                    bytes += part.len();
                    // Otherwise a body that is already buffered would be read without letting other tasks run.
                    tokio::task::yield_now().await;
                }
                Some(Err(_)) => return false,
                None => return true,
            }
        }
        false
    };
    timeout(DISCARD_TIMEOUT, reading).await.unwrap_or(false)
}

/// Discards the body of a request that was rejected because of its head. If part of the body is left, the response
/// closes the connection, because that part would be taken for the next request.
pub(super) async fn discard_body(body: Body, version: Version, mut response: Response) -> Response {
    if !discard(&mut body.into_data_stream(), version, UNAUTHENTICATED_DISCARD_BYTES_MAX, |_| {}).await {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
