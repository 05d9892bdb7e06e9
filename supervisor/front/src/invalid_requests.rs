//! Errors for messages of AI clients that rmcp does not recognize as one of MCP's.

use rmcp::model::{CustomRequest, ErrorCode, ErrorData, RequestMetaObject};
use serde_json::Value;

/// The methods of MCP's requests to servers. If the parameters of one do not have the form that MCP defines, rmcp takes
/// the message for a request of another protocol.
const METHODS: [&str; 18] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// Methods among them that protocol version 2026-07-28 does not have any more.
const REMOVED: [&str; 5] =
    ["initialize", "logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"];

/// Returns the error for a request that rmcp does not recognize. `meta` is its metadata.
pub(crate) fn error_for(request: &CustomRequest, meta: &RequestMetaObject) -> ErrorData {
    let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
    invalid_params(request, meta).unwrap_or_else(unknown)
}

/// Returns the error for a request that rmcp does not recognize although its method is one of MCP's, because its parameters
/// are invalid; `None` if the method is not one of MCP's. `meta` is its metadata.
pub(crate) fn invalid_params(request: &CustomRequest, meta: &RequestMetaObject) -> Option<ErrorData> {
    let method = METHODS.into_iter().find(|method| *method == request.method)?;
    // Requests name their protocol version from 2026-07-28 on.
    if meta.protocol_version().is_some() && REMOVED.contains(&method) {
        return None;
    }
    let arguments = request.params.as_ref().and_then(|params| params.get("arguments"));
    let message = match arguments {
        Some(arguments) if !arguments.is_object() => {
            format!("`arguments` of {method} must be an object, not {}", kind_of(arguments))
        }
        _ => format!("the parameters of {method} do not have the form that MCP defines"),
    };
    Some(ErrorData::invalid_params(message, None))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string: send the object itself, not its JSON text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
