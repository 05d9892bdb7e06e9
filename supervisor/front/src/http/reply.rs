//! Turns replies of the MCP server into HTTP responses.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use lockhouse_mcp::server::HttpReply;

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
