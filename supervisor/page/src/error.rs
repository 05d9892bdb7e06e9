//! Errors that a page shows to its viewer.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The kind of an error. docs/page.md lists the codes and their HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request has no session, or its session has ended.
    NoSession,
    /// The viewer may not do this, or another web page sent the request.
    Forbidden,
    /// The request names another host than the page's own.
    WrongHost,
    NotFound,
    /// The request is malformed.
    Invalid,
    /// What the viewer was shown has changed since. Nothing was done.
    Stale,
    /// The action is not possible. Nothing was done.
    Refused,
    /// A limit is reached: try again later.
    TooMany,
    /// An action failed.
    Failed,
    Method,
    ContentType,
    TooLarge,
}

impl ErrorCode {
    fn status(self) -> StatusCode {
        match self {
            Self::NoSession => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Stale | Self::Refused => StatusCode::CONFLICT,
            Self::TooMany => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::BAD_GATEWAY,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }
}

/// An error with a sentence for the viewer of the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ActionError {
    pub code: ErrorCode,
    pub message: String,
}

impl ActionError {
    /// Returns the error for a Lockhouse process that does not answer.
    #[must_use]
    pub fn no_answer() -> Self {
        Self::new(ErrorCode::Failed, "the Lockhouse process did not answer: it is busy, or it has ended")
    }

    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: super::text::long(&message.into()) }
    }
}

impl IntoResponse for ActionError {
    fn into_response(self) -> Response {
        let body = json!({"error": {"code": self.code, "message": self.message}});
        (self.code.status(), Json(body)).into_response()
    }
}
