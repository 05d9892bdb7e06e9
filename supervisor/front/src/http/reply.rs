//! Turns replies of the MCP server, and rejections, into HTTP responses.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use lockhouse_mcp::server::HttpReply;
use lockhouse_messages::HttpRefusal;

use super::counters;
use crate::access::Rejection;

pub(super) fn to_response(reply: HttpReply) -> Response {
    match reply {
        HttpReply::Accepted => StatusCode::ACCEPTED.into_response(),
        HttpReply::Text(status, text) => (status, text).into_response(),
        HttpReply::NotAllowed(allowed) => {
            (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, allowed)], "Method Not Allowed").into_response()
        }
        HttpReply::Json(status, json) => (status, [(CONTENT_TYPE, "application/json")], json).into_response(),
        HttpReply::Events(events) => event_stream(events),
    }
}

fn event_stream(events: BoxStream<'static, Bytes>) -> Response {
    let head = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        // nginx would otherwise hold events back.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (head, Body::from_stream(events.map(Ok::<_, Infallible>))).into_response()
}

/// Maximum delay of a 429 response. The delay limits how fast one connection can send requests above its rate limit.
const RATE_LIMIT_DELAY_MAX: Duration = Duration::from_secs(1);

/// Returns the response to a request that authentication or the rate limit rejected. A 429 response is delayed, so that
/// clients that retry at once do not take the CPU time of others.
pub(super) async fn reject(rejection: Rejection) -> Response {
    if let Some(wait) = rejection.retry_after() {
        tokio::time::sleep(wait.min(RATE_LIMIT_DELAY_MAX)).await;
    }
    let response = rejection.into_response();
    match response.status() {
        StatusCode::UNAUTHORIZED => counters::count_auth_failure(),
        StatusCode::TOO_MANY_REQUESTS => counters::count_refusal(HttpRefusal::Rate),
        _ => {}
    }
    response
}
