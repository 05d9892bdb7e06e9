//! Converts failures of calls to directly exposed servers to JSON-RPC errors for the AI client, and to
//! texts for the model.

use lockhouse_messages::{JsonRpcError, RequestFailure};
use lockhouse_protocol::Failure;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;

/// Converts an error that the engine passes on to one of the MCP library.
pub(super) fn mcp_error(error: JsonRpcError) -> ErrorData {
    ErrorData::new(ErrorCode(error.code), error.message, error.data)
}

/// Converts the failure of a request to the engine to a JSON-RPC error. `what` is what failed if there is no other reason, such
/// as `the list`.
pub(crate) fn request_error(failure: RequestFailure, what: &str) -> ErrorData {
    let description = failure.describe(what);
    match failure {
        RequestFailure::Error(error) => mcp_error(error),
        RequestFailure::NotFound | RequestFailure::Invalid(_) => ErrorData::invalid_params(description, None),
        RequestFailure::Refused(_) => ErrorData::invalid_request(description, None),
        RequestFailure::Unavailable(_) | RequestFailure::DeadlineExceeded | RequestFailure::EngineFailed => {
            ErrorData::internal_error(description, None)
        }
    }
}

/// Returns a JSON-RPC error for invalid parameters.
pub(super) fn invalid_params(message: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), None)
}

/// Formats the failure of a call to a directly exposed server as the text of a tool result, for the
/// model.
pub(super) fn failure_text(failure: &Failure) -> String {
    format!("{}: {}", failure.code.as_str(), failure.message)
}

/// Converts the failure of a call to a directly exposed server to a JSON-RPC error for the AI client. The
/// error's data has the failure code and whether a retry is useful (`retryable`).
pub(super) fn protocol_error(failure: &Failure) -> ErrorData {
    let data = Some(json!({"code": failure.code.as_str(), "retryable": failure.retryable}));
    let message = failure.message.clone();
    match failure.code.is_of_request() {
        true => ErrorData::invalid_params(message, data),
        false => ErrorData::internal_error(message, data),
    }
}
