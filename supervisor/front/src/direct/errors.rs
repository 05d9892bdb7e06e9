//! Why a call of an AI client itself failed, as it is told.

use lockhouse_protocol::{Failure, FailureCode};
use rmcp::model::ErrorData;
use serde_json::json;

/// Of parameters that cannot be meant.
pub(super) fn invalid(told: &str) -> ErrorData {
    ErrorData::invalid_params(told.to_owned(), None)
}

/// For the model to read.
pub(super) fn told(failure: &Failure) -> String {
    format!("{}: {}", failure.code.as_str(), failure.message)
}

/// For the program that asked.
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
