//! The body of a request: read whole, in time, and no more of it than there is room for, before anything else looks at it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::limits::HttpLimits;
use crate::telemetry;

/// Of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

/// What every request has room for without asking for it.
const SMALL_BYTES: usize = 64 * 1024;

/// The room for bodies that are being read.
#[derive(Debug)]
pub(super) struct Bodies {
    limits: HttpLimits,
    /// Bodies of the full size.
    large: Semaphore,
}

impl Bodies {
    pub(super) fn new(limits: HttpLimits) -> Self {
        Self { limits, large: Semaphore::new((limits.bodies_bytes / limits.body_bytes).max(1)) }
    }

    async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Refusal> {
        let announced =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > self.limits.body_bytes as u64) {
            return Err(Refusal::TooLarge(self.limits.body_bytes));
        }
        let mut body = body.into_data_stream();
        let mut read = Vec::new();
        let mut room: Option<SemaphorePermit<'_>> = None;
        while let Some(part) = body.next().await {
            let part: Bytes = part.map_err(|_| Refusal::Broken)?;
            if part.len() > self.limits.body_bytes - read.len() {
                return Err(Refusal::TooLarge(self.limits.body_bytes));
            }
            if room.is_none() && read.len() + part.len() > SMALL_BYTES {
                room = Some(self.large.acquire().await.map_err(|_| Refusal::Broken)?);
            }
            read.extend_from_slice(&part);
        }
        Ok(read)
    }
}

/// Why a body is not read.
#[derive(Debug)]
enum Refusal {
    TooLarge(usize),
    Late,
    Broken,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, words) = match self {
            Self::TooLarge(max) => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is too large: at most {} KiB", max / 1024))
            }
            Self::Late => (StatusCode::REQUEST_TIMEOUT, "the body did not come in time".to_owned()),
            Self::Broken => (StatusCode::BAD_REQUEST, "the body cannot be read".to_owned()),
        };
        telemetry::refused(if matches!(self, Self::Late) { "timeout" } else { "body" });
        (status, words).into_response()
    }
}

/// What keeps JSON from being one message, with the code that JSON-RPC has for it.
fn fault(headers: &HeaderMap, read: &[u8]) -> Option<(i32, &'static str)> {
    let is_json = headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_json {
        return None;
    }
    if serde_json::from_slice::<IgnoredAny>(read).is_err() {
        return Some((PARSE_ERROR, "the body is not valid JSON"));
    }
    // Of 2025-03-26 alone, and gone since.
    let is_batch = read.trim_ascii_start().starts_with(b"[");
    is_batch.then_some((INVALID_REQUEST, "batches are not taken: send each message by itself"))
}

/// Reads the body of a request before it is passed on.
pub(super) async fn read(State(bodies): State<Arc<Bodies>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let version = parts.version;
    let reading = tokio::time::timeout(bodies.limits.body, bodies.read(&parts.headers, body));
    match reading.await.unwrap_or(Err(Refusal::Late)) {
        Ok(read) => match fault(&parts.headers, &read) {
            Some((code, message)) => {
                let error =
                    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
                (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
            }
            None => next.run(Request::from_parts(parts, read.into())).await,
        },
        Err(refusal) => {
            let mut response = refusal.into_response();
            // What is left of the body would be taken for the next request; HTTP/2 has a stream for each.
            if version != Version::HTTP_2 {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
    }
}
