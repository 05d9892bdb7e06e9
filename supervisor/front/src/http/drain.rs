//! Refuses requests that start new work while the service drains before a restart. Requests that belong to work in
//! progress are passed on.

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use lockhouse_link::{EngineClient, RequestInFlight};
use lockhouse_mcp::server::client_message::{ClientMessage, Parameters};
use lockhouse_messages::{BuiltinTool, BuiltinTools, HttpRefusal};
use serde_json::json;

use super::counters;

/// JSON-RPC error code "restarting", in the range that servers define themselves.
const RESTARTING_CODE: i32 = -32_050;
const RESTART_MESSAGE: &str =
    "Lockhouse is restarting and takes no new requests; nothing was run. Send the request again";
const WITHDRAWN_MESSAGE: &str =
    "this host takes no new requests, since an operator drains it; nothing was run. Send the request again";

/// Counts a request as in flight, if it is one that ends by itself. While the service drains (finishes its work before a
/// restart), or an operator drains this host of a cluster, refuses requests that start new work with 503, and permits requests that belong to work in progress.
///
/// # Errors
/// The response that refuses the request.
pub(super) fn admit(
    engine: &EngineClient,
    head: &Parts,
    message: Option<&ClientMessage>,
) -> Result<Option<RequestInFlight>, Box<Response>> {
    let in_flight =
        (head.method == Method::POST && !is_open_ended(head)).then(|| engine.lifecycle().begin_request());
    let is_started = || match message {
        Some(message) => belongs_to_started_work(message, &engine.settings().tools),
        None => head.method == Method::DELETE,
    };
    let words = match (engine.lifecycle().is_draining(), engine.is_withdrawn()) {
        (true, _) => RESTART_MESSAGE,
        (false, true) => WITHDRAWN_MESSAGE,
        (false, false) => return Ok(in_flight),
    };
    if is_started() {
        return Ok(in_flight);
    }
    counters::count_refusal(HttpRefusal::Draining);
    let seconds = engine.lifecycle().retry_after().as_secs();
    let id = match message {
        Some(ClientMessage::Request(request)) => Some(&request.id),
        _ => None,
    };
    let error = json!({"code": RESTARTING_CODE, "message": format!("{words} in {seconds} s."), "data": {"retry_after_s": seconds}});
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
    // On a new connection, the next process receives the request.
    let head = [(RETRY_AFTER, seconds.to_string()), (CONNECTION, "close".to_owned())];
    Err(Box::new((StatusCode::SERVICE_UNAVAILABLE, head, axum::Json(answer)).into_response()))
}

/// Returns whether a request opens an event stream that only its client ends. Draining does not wait for such requests.
fn is_open_ended(head: &Parts) -> bool {
    head.headers.get("mcp-method").is_some_and(|method| method == "subscriptions/listen")
}

/// Returns whether a JSON-RPC message belongs to work in progress: a response, a notification, `ping`, `get_result` under
/// the name that it has in `tools`, a repeated `tools/call`, or a request about an MCP task.
fn belongs_to_started_work(message: &ClientMessage, tools: &BuiltinTools) -> bool {
    let ClientMessage::Request(request) = message else { return true };
    match &request.parameters {
        Ok(Parameters::CallTool(call)) => {
            call.request_state.is_some()
                || tools.original_name(&call.name) == Some(BuiltinTool::GetResult.as_str())
        }
        _ => request.method == "ping" || request.method.starts_with("tasks/"),
    }
}

/// If the response is an event stream, counts its request as in flight until the last byte of the response is sent. Any
/// other response is complete already, so its request no longer counts as in flight.
pub(super) fn hold_until_sent(in_flight: Option<RequestInFlight>, response: Response) -> Response {
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
        ];
        let own = BuiltinTools::default();
        let belongs = |text: &str, tools: &BuiltinTools| {
            let text =
                text.replacen('{', r#"{"jsonrpc":"2.0","#, 1).replace(r#""2.0","jsonrpc":"2.0""#, r#""2.0""#);
            belongs_to_started_work(&ClientMessage::parse(text.as_bytes()).expect("a message"), tools)
        };
        for message in heard {
            assert!(belongs(message, &own), "{message}");
        }
        for message in turned_away {
            assert!(!belongs(message, &own), "{message}");
        }
        let prefixed = BuiltinTools { prefix: "lh_".into(), ..BuiltinTools::default() };
        for (name, expected) in [("lh_get_result", true), ("get_result", false)] {
            let call = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"{name}"}}}}"#);
            assert_eq!(belongs(&call, &prefixed), expected, "{name}");
        }
    }
}
