//! The body of a request: read whole, in time, and no more of it than there is room for, before anything else looks at it.
//!
//! Its client pays for it: for what was received, whatever becomes of it, and for the values that were counted. A client that
//! owes something is refused before its next body is parsed. Large bodies are parsed on another thread, one after another, so
//! that nobody else waits for them.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt, StreamExt};
use lockhouse_base::principal::{Owner, Principal};
use lockhouse_base::telemetry;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::limits::HttpLimits;
use super::message::{self, INVALID_REQUEST, Message, MessageFault, cost_of_bytes};
use super::places::{Place, Places};
use super::refuse;
use super::watched::Watch;
use crate::access::{Access, Refused};

/// What every request has room for without asking for it, and what is parsed in place.
const SMALL_BYTES: usize = 64 * 1024;
/// Large bodies that are parsed at one time, each on a thread of its own.
const PARSED_AT_ONCE: usize = 1;
/// Of the body of a request that is refused: what is read on of it, in bodies of the full size, and for how long.
const DISCARDED_TIMES: usize = 4;
const DISCARDED_WITHIN: Duration = Duration::from_secs(2);
/// As much of one whose request is refused by its head alone: nobody pays for it.
const DISCARDED_UNPAID_BYTES: usize = 256 * 1024;
/// One is read on at a time: many that come together would keep all other clients waiting.
static DISCARDING: Semaphore = Semaphore::const_new(1);
/// Seconds.
const BUSY_RETRY_AFTER: &str = "2";

/// Reads bodies of clients, and keeps account of them.
#[derive(Debug)]
pub(super) struct Bodies {
    limits: HttpLimits,
    access: Arc<Access>,
    /// Of bodies of the full size.
    places: Places,
    parsing: Arc<Semaphore>,
}

/// A body that was received, at the cost of its client.
struct Received {
    body: Vec<u8>,
    /// Of a large one.
    place: Option<Place>,
}

/// Charges a client for what was received, also if the rest never comes.
struct Meter<'a> {
    access: &'a Access,
    owner: Owner,
    bytes: usize,
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.access.charge(self.owner, cost_of_bytes(self.bytes));
    }
}

impl Bodies {
    pub(super) fn new(limits: HttpLimits, access: Arc<Access>) -> Self {
        let places = Places::new(limits.bodies_bytes / limits.body_bytes);
        Self { limits, access, places, parsing: Arc::new(Semaphore::new(PARSED_AT_ONCE)) }
    }

    async fn receive(
        &self,
        owner: Owner,
        watch: Option<&Watch>,
        headers: &HeaderMap,
        parts: &mut BodyDataStream,
    ) -> Result<Received, Refusal> {
        let mut until = Instant::now() + self.limits.body;
        let announced =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > self.limits.body_bytes as u64) {
            self.access.check_debt(owner)?;
            return Err(Refusal::TooLarge(self.limits.body_bytes));
        }
        let (mut body, mut place) = (Vec::new(), None);
        let mut meter = Meter { access: &self.access, owner, bytes: 0 };
        while let Some(part) = timeout_at(until, parts.next()).await.map_err(|_| Refusal::Late)? {
            let part: Bytes = part.map_err(|_| Refusal::Broken)?;
            meter.bytes += part.len();
            if part.len() > self.limits.body_bytes - body.len() {
                return Err(Refusal::TooLarge(self.limits.body_bytes));
            }
            if place.is_none() && body.len() + part.len() > SMALL_BYTES {
                // The body has all of its time besides: others decide how long it waits.
                let waits_since = Instant::now();
                place = Some(self.place(owner, watch).await?);
                until += waits_since.elapsed();
                self.access.check_debt(owner)?;
            }
            body.extend_from_slice(&part);
        }
        // Before this body is charged for: it may cost more than there is.
        self.access.check_debt(owner)?;
        Ok(Received { body, place })
    }

    /// Waits for a place, as long as a body may take to be received.
    async fn place(&self, owner: Owner, watch: Option<&Watch>) -> Result<Place, Refusal> {
        let taking = self.places.take(owner);
        let mut taking = pin!(taking);
        if let Some(place) = taking.as_mut().now_or_never() {
            return place.ok_or(Refusal::Broken);
        }
        let _waiting = match watch.map(Watch::wait_for_place) {
            Some(None) => return Err(Refusal::Busy),
            waiting => waiting,
        };
        timeout(self.limits.body, taking).await.map_err(|_| Refusal::Busy)?.ok_or(Refusal::Broken)
    }

    /// Answers a request that is refused, once what is left of its body is read or as much of it as may be, at the cost of its
    /// client.
    async fn refuse(
        &self,
        owner: Owner,
        refusal: Refusal,
        mut parts: BodyDataStream,
        version: Version,
    ) -> Response {
        if refusal.leaves_body_unread() {
            let mut meter = Meter { access: &self.access, owner, bytes: 0 };
            let bytes_max = DISCARDED_TIMES * self.limits.body_bytes;
            discard(&mut parts, version, bytes_max, |bytes| meter.bytes += bytes).await;
        }
        refusal.answer(version).await
    }

    async fn parse(&self, owner: Owner, received: Received) -> Result<Message, Refusal> {
        let Received { body, place } = received;
        let (access, values_max) = (self.access.clone(), self.limits.body_values);
        let parse = move || {
            let (cost, message) = message::parse(body, values_max);
            access.charge(owner, cost);
            message
        };
        let message = match place {
            None => parse(),
            Some(place) => {
                let turn = self.parsing.clone().acquire_owned().await.map_err(|_| Refusal::Broken)?;
                // The turn and the place end with the work, also if the client has left.
                let work = move || {
                    let _held = (turn, place);
                    parse()
                };
                tokio::task::spawn_blocking(work).await.map_err(|_| Refusal::Broken)?
            }
        };
        message.map_err(Refusal::Message)
    }
}

/// Why a request is not passed on.
#[derive(Debug)]
enum Refusal {
    TooLarge(usize),
    Late,
    /// Others have all places, for longer than a body may take, or too many requests of the connection wait for one.
    Busy,
    Broken,
    Message(MessageFault),
    /// Its client has used up what it may.
    Client(Refused),
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Client(refused)
    }
}

impl Refusal {
    /// Whether its client may still be writing, and has the time for it.
    fn leaves_body_unread(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Busy | Self::Client(_))
    }

    async fn answer(self, version: Version) -> Response {
        let is_read = matches!(self, Self::Message(_));
        let mut response = match self {
            Self::Client(refused) => refuse(refused).await,
            Self::TooLarge(max) => {
                let told =
                    format!("the body is too large: at most {} KiB, body_kib of [http.limits]", max / 1024);
                refused_body(StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST, &told)
            }
            Self::Late => {
                telemetry::refused("timeout");
                (StatusCode::REQUEST_TIMEOUT, "the body did not come in time").into_response()
            }
            Self::Busy => {
                telemetry::refused("body");
                let words = "too many large bodies are being received: send this one again later";
                (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, BUSY_RETRY_AFTER)], words)
                    .into_response()
            }
            Self::Broken => {
                telemetry::refused("body");
                (StatusCode::BAD_REQUEST, "the body cannot be read").into_response()
            }
            Self::Message(fault) => {
                let status =
                    if fault.is_size() { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
                refused_body(status, fault.code(), &fault.to_string())
            }
        };
        // What is left of the body would be taken for the next request; HTTP/2 has a stream for each.
        if !is_read && version != Version::HTTP_2 {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

fn refused_body(status: StatusCode, code: i32, message: &str) -> Response {
    telemetry::refused("body");
    error(status, code, message, Value::Null)
}

/// An error of JSON-RPC.
pub(super) fn error(status: StatusCode, code: i32, message: &str, id: Value) -> Response {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    (status, axum::Json(error)).into_response()
}

/// Whether rmcp parses the body of such a request.
fn is_message(method: &Method, headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    method == Method::POST && essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Reads on in a body that nobody wants, up to a bound and for a while, and keeps nothing: whether nothing is left of it. A client
/// of HTTP/1.1 that writes its whole body before it reads would otherwise find a closed connection in place of the reason. HTTP/2
/// ends the stream alone, and the answer arrives.
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
        let _turn = DISCARDING.acquire().await;
        while bytes <= bytes_max {
            match parts.next().await {
                Some(Ok(part)) => {
                    count(part.len());
                    bytes += part.len();
                    // What lies there already would be read in one go.
                    tokio::task::yield_now().await;
                }
                Some(Err(_)) => return false,
                None => return true,
            }
        }
        false
    };
    timeout(DISCARDED_WITHIN, reading).await.unwrap_or(false)
}

/// Reads the body of a request that was refused before anything was read of it. What is left of it then would be taken for the next
/// request, so the connection ends.
pub(super) async fn read_on(body: Body, version: Version, mut response: Response) -> Response {
    if !discard(&mut body.into_data_stream(), version, DISCARDED_UNPAID_BYTES, |_| {}).await {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Reads the body of a request before it is passed on.
pub(super) async fn read(State(bodies): State<Arc<Bodies>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let version = parts.version;
    let Some(owner) = parts.extensions.get::<Principal>().map(Principal::owner) else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let watch = parts.extensions.get::<Watch>();
    let mut body = body.into_data_stream();
    let received = match bodies.receive(owner, watch, &parts.headers, &mut body).await {
        Ok(received) => received,
        Err(refusal) => return bodies.refuse(owner, refusal, body, version).await,
    };
    if !is_message(&parts.method, &parts.headers) {
        return next.run(Request::from_parts(parts, received.body.into())).await;
    }
    match bodies.parse(owner, received).await {
        Ok(message) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            if let Some(arguments) = message.arguments {
                parts.extensions.insert(arguments);
            }
            next.run(Request::from_parts(parts, message.outline.into())).await
        }
        Err(refusal) => refusal.answer(version).await,
    }
}
