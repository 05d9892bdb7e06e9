//! Why a request was not carried out, or not to its end.

use crate::{AccessRefusal, JsonRpcError, Response};

/// Why the response to a request is not what the request asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestFailure {
    /// The run or the tool that the request names does not exist.
    NotFound,
    /// The request is not valid, for this reason.
    Invalid(String),
    /// The AI client gets this JSON-RPC error.
    Error(JsonRpcError),
    /// The AI client's access has ended, or permits no such request.
    Refused(AccessRefusal),
    /// The process of the engine cannot be reached, or ended. The text says what happened and what to do.
    Unavailable(String),
    /// The engine did not answer before the deadline of the request.
    DeadlineExceeded,
    /// The engine failed, or answered another request.
    EngineFailed,
}

impl Response {
    /// Returns why a request failed that got this response instead of the one that it asks for.
    pub fn into_failure(self) -> RequestFailure {
        match self {
            Self::NotFound => RequestFailure::NotFound,
            Self::Invalid(reason) => RequestFailure::Invalid(reason),
            Self::Error(error) => RequestFailure::Error(error),
            Self::Refused(refusal) | Self::Access(Err(refusal)) => RequestFailure::Refused(refusal),
            Self::Unavailable(message) => RequestFailure::Unavailable(message),
            Self::DeadlineExceeded => RequestFailure::DeadlineExceeded,
            Self::EngineFailed
            | Self::Run(_)
            | Self::Json(_)
            | Self::File(_)
            | Self::Entries(_)
            | Self::Call(..)
            | Self::Access(Ok(_))
            | Self::Reasons(_)
            | Self::Text(_) => RequestFailure::EngineFailed,
        }
    }
}

impl RequestFailure {
    /// Returns the failure as text. `what` is what failed if there is no other reason, such as `the list`.
    pub fn describe(&self, what: &str) -> String {
        match self {
            Self::NotFound => "there is no such run or tool".to_owned(),
            Self::Invalid(reason) | Self::Unavailable(reason) => reason.clone(),
            Self::Error(error) => error.message.clone(),
            Self::Refused(refusal) => refusal.description().into_owned(),
            Self::DeadlineExceeded => format!("{what} took too long inside Lockhouse"),
            Self::EngineFailed => format!("{what} failed inside Lockhouse"),
        }
    }
}
