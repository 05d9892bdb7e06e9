//! Refuses requests that start new work while the service drains before a restart. Requests that belong to work in
//! progress are passed on.

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use lockhouse_base::json;
use lockhouse_link::{EngineClient, RequestInFlight};
use lockhouse_messages::{BuiltinTool, BuiltinTools, HttpRefusal};
use serde_json::json;

use super::counters;

/// Maximum size in bytes of a request body that is read while the service drains (finishes its work before a restart).
const REQUEST_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum number of JSON values in a message that is parsed while the service drains. A message with more counts as
/// new work.
const VALUES_MAX: usize = 10_000;
/// JSON-RPC error code "restarting", in the range that servers define themselves.
const RESTARTING_CODE: i32 = -32_050;
const RESTART_MESSAGE: &str =
    "Lockhouse is restarting and takes no new requests; nothing was run. Send the request again";

/// Middleware that counts requests in flight. While the service drains (finishes its work before a restart), it answers
/// requests that start new work with 503, and passes on requests that belong to work in progress.
pub(super) async fn refuse_while_draining(
    State(engine): State<EngineClient>,
    request: Request,
    next: Next,
) -> Response {
    let in_flight = (request.method() == Method::POST && !is_open_ended(&request))
        .then(|| engine.lifecycle().begin_request());
    if !engine.lifecycle().is_draining() {
        return hold_until_sent(in_flight, next.run(request).await);
    }
    let (head, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, REQUEST_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    if head.method == Method::POST && belongs_to_started_work(&bytes, &engine.settings().tools) {
        let request = Request::from_parts(head, Body::from(bytes));
        return hold_until_sent(in_flight, next.run(request).await);
    }
    if head.method == Method::DELETE {
        return next.run(Request::from_parts(head, Body::empty())).await;
    }
    counters::count_refusal(HttpRefusal::Draining);
    let seconds = engine.lifecycle().retry_after().as_secs();
    let message = json::parse_bounded(&bytes, VALUES_MAX).unwrap_or_default();
    let error = json!({"code": RESTARTING_CODE, "message": format!("{RESTART_MESSAGE} in {seconds} s."), "data": {"retry_after_s": seconds}});
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
    // On a new connection, the next process receives the request.
    let head = [(RETRY_AFTER, seconds.to_string()), (CONNECTION, "close".to_owned())];
    (StatusCode::SERVICE_UNAVAILABLE, head, axum::Json(answer)).into_response()
}

/// Returns whether a request opens an event stream that only its client ends. Draining does not wait for such requests.
fn is_open_ended(request: &Request) -> bool {
    request.headers().get("mcp-method").is_some_and(|method| method == "subscriptions/listen")
}

/// Returns whether a JSON-RPC message belongs to work in progress: a response, a notification, `ping`, `get_result` under
/// the name that it has in `tools`, a repeated `tools/call`, or a request about an MCP task.
fn belongs_to_started_work(message: &Bytes, tools: &BuiltinTools) -> bool {
    let Ok(message) = json::parse_bounded(message, VALUES_MAX) else { return false };
    let Some(method) = message["method"].as_str() else { return message.is_object() };
    let (is_notification, parameters) = (message.get("id").is_none(), &message["params"]);
    match method {
        "ping" => true,
        "tools/call" => {
            let name = parameters["name"].as_str().and_then(|name| tools.original_name(name));
            name == Some(BuiltinTool::GetResult.as_str()) || parameters["requestState"].is_string()
        }
        _ => is_notification || method.starts_with("tasks/"),
    }
}

/// If the response is an event stream, counts its request as in flight until the last byte of the response is sent. Any
/// other response is complete already, so its request no longer counts as in flight.
fn hold_until_sent(in_flight: Option<RequestInFlight>, response: Response) -> Response {
    let Some(in_flight) = in_flight else { return response };
    let (head, body) = response.into_parts();
    if !is_event_stream(&head.headers) {
        // The body is complete. The graceful shutdown of the connection sends it.
        return Response::from_parts(head, body);
    }
    let body = body.into_data_stream().map(move |part| {
        let _ = &in_flight;
        part
    });
    Response::from_parts(head, Body::from_stream(body))
}

fn is_event_stream(headers: &axum::http::HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_draining_only_started_work_continues() {
        let heard = [
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"get_result","arguments":{}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"run_code","requestState":"x"}}"#,
            r#"{"id":1,"method":"tasks/get","params":{}}"#,
        ];
        let turned_away = [
            r#"{"id":1,"method":"tools/call","params":{"name":"run_code","arguments":{}}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"search_tools","requestState":null}}"#,
            r#"{"id":1,"method":"initialize"}"#,
            r#"{"id":1,"method":"server/discover"}"#,
            r#"[{"id":1,"method":"ping"}]"#,
            "no JSON",
            "",
        ];
        let own = BuiltinTools::default();
        for message in heard {
            assert!(belongs_to_started_work(&Bytes::from_static(message.as_bytes()), &own), "{message}");
        }
        for message in turned_away {
            assert!(!belongs_to_started_work(&Bytes::from_static(message.as_bytes()), &own), "{message}");
        }
        let prefixed = BuiltinTools { prefix: "lh_".into(), ..BuiltinTools::default() };
        for (name, expected) in [("lh_get_result", true), ("get_result", false)] {
            let call = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#);
            assert_eq!(belongs_to_started_work(&call.into(), &prefixed), expected, "{name}");
        }
    }
}
