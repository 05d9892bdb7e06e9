//! Converts errors of requests to upstream servers into errors for submitted code, for AI clients that use the server
//! directly, and for traces.

use std::time::Duration;

use lockhouse_base::secrets::Secrets;
use lockhouse_protocol::{FailureCode, ServerName};
use rmcp::model::{ErrorCode, ErrorData};

use crate::call_types::CallError;
use lockhouse_mcp::ResponseError;
use lockhouse_mcp::client::inbound_message::{CUT_OFF, NOT_JSON, TOO_LARGE};

/// Maximum number of characters of a server's error text that submitted code receives.
const ERROR_CHARS_MAX: usize = 4_000;

/// Converts the error of a request to an upstream server into the error of its call. `limit` is the timeout of the
/// request.
pub(super) fn call_error(
    server: &ServerName,
    secrets: &Secrets,
    error: &ResponseError,
    limit: Duration,
) -> CallError {
    let unavailable = |message| CallError::new(FailureCode::UpstreamUnavailable, message);
    match error {
        ResponseError::Http(fault) => {
            unavailable(format!("server {server} is not available: {}", fault.reason))
        }
        ResponseError::SessionLost => unavailable(format!(
            "server {server} does not know the MCP session any more, and no new one could be begun"
        )),
        ResponseError::Refused(error) if error.message == TOO_LARGE => CallError::new(
            FailureCode::ResultTooLarge,
            format!("the result of server {server} exceeds the limit of one message; ask for less at a time"),
        ),
        ResponseError::Refused(error) if !is_lost(error) => {
            let code = match error.code {
                ErrorCode::INVALID_PARAMS => FailureCode::InvalidArguments,
                ErrorCode::RESOURCE_NOT_FOUND => FailureCode::UnknownTool,
                _ => FailureCode::ToolFailed,
            };
            let message: String = secrets.redact(&error.message).chars().take(ERROR_CHARS_MAX).collect();
            CallError::new(code, message)
        }
        ResponseError::Timeout(_) => CallError::new(
            FailureCode::Timeout,
            format!("server {server} did not answer within {} s", limit.as_secs_f32()),
        ),
        ResponseError::Refused(_) | ResponseError::Closed | ResponseError::Invalid => unavailable(format!(
            "server {server} ended during the call; whether the call took effect is not known"
        )),
    }
}

/// Returns the server's own error with secrets redacted; `None` if the error was created by Lockhouse.
pub(super) fn own_error(secrets: &Secrets, error: &ErrorData) -> Option<ErrorData> {
    if is_lost(error) || matches!(&*error.message, TOO_LARGE | NOT_JSON) {
        return None;
    }
    let data = error.data.as_ref().map(|data| secrets.redact(&data.to_string()));
    let mut error = error.clone();
    error.message = secrets.redact(&error.message).into();
    error.data = data.and_then(|data| serde_json::from_str(&data).ok());
    Some(error)
}

/// Whether the answer of the server was lost, and this error replaces it.
fn is_lost(error: &ErrorData) -> bool {
    error.message == CUT_OFF
}

/// Returns a fixed word for the kind of a request's error, for traces.
pub(super) fn kind(error: &ResponseError) -> &'static str {
    match error {
        ResponseError::Refused(_) => "mcp_error",
        ResponseError::Timeout(_) => "timeout",
        _ => "unavailable",
    }
}
