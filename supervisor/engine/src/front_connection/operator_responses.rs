//! Responses to requests of operators that may fail.

use std::fmt::Display;

use lockhouse_messages::OperatorResponse;

/// Returns the response to a request that was carried out, or the refusal with the error.
pub(super) fn respond<T, E: Display>(
    done: Result<T, E>,
    response: impl FnOnce(T) -> OperatorResponse,
) -> OperatorResponse {
    done.map_or_else(|error| refused(error.to_string()), response)
}

pub(super) fn refused(reason: impl Into<String>) -> OperatorResponse {
    OperatorResponse::Refused { reason: reason.into() }
}
