//! Converts failures of direct calls to JSON-RPC errors and texts.

use lockhouse_protocol::{Failure, FailureCode};
use rmcp::model::ErrorData;
use serde_json::json;

/// Returns a JSON-RPC error for invalid parameters.
pub(super) fn invalid_params(message: &str) -> ErrorData {
    ErrorData::invalid_params(message.to_owned(), None)
}

/// Formats a failure as the text of a tool result, for the model.
pub(super) fn failure_text(failure: &Failure) -> String {
    format!("{}: {}", failure.code.as_str(), failure.message)
}

/// Converts a failure to a JSON-RPC error with code and `retryable`, for the AI client.
pub(super) fn protocol_error(failure: &Failure) -> ErrorData {
    let data = Some(json!({"code": failure.code.as_str(), "retryable": failure.retryable}));
    let message = failure.message.clone();
    match failure.code {
        FailureCode::UnknownTool
        | FailureCode::NotFound
        | FailureCode::InvalidArguments
        | FailureCode::Denied => ErrorData::invalid_params(message, data),
        _ => ErrorData::internal_error(message, data),
    }
}
