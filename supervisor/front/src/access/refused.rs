//! What is said to whoever is not let in: to programs in the words of RFC 6750, to people in a sentence. Nothing of what they
//! sent is repeated.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request is not admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It proves nothing.
    Nothing,
    /// A user of this machine who is not among those that are admitted.
    Stranger,
    SeveralHeaders,
    NotBearer,
    /// What it has is no token of ours, and no other kind is taken.
    NoToken,
    UnknownToken,
    RevokedToken,
    ExpiredToken,
    /// The file of tokens cannot be read.
    TokensUnreadable,
    /// The token of an authorization server, and what is wrong with it.
    Foreign(&'static str),
    /// Its scopes grant nothing here.
    Scope,
    /// The keys of the authorization server are not to be had.
    KeysUnavailable,
    /// Too many requests.
    TooMany(Duration),
}

impl Why {
    fn status(&self) -> StatusCode {
        match self {
            Self::Scope | Self::Stranger => StatusCode::FORBIDDEN,
            Self::TokensUnreadable | Self::KeysUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// In RFC 6750's words. Who has sent nothing is told no error, but what is asked for.
    fn error(&self) -> &'static str {
        match self {
            Self::Nothing => "unauthorized",
            Self::SeveralHeaders | Self::NotBearer => "invalid_request",
            Self::Scope => "insufficient_scope",
            Self::Stranger => "access_denied",
            Self::TokensUnreadable | Self::KeysUnavailable => "temporarily_unavailable",
            Self::TooMany(_) => "too_many_requests",
            _ => "invalid_token",
        }
    }

    /// What is told. The log says which of several it was.
    fn description(&self) -> String {
        match self {
            Self::Nothing => "this server asks who you are: send the header Authorization: Bearer TOKEN".into(),
            Self::Stranger => "this user of the machine is not among those that this server admits".into(),
            Self::SeveralHeaders => "there is more than one Authorization header".into(),
            Self::NotBearer => "the Authorization header is not of the form: Bearer TOKEN".into(),
            Self::NoToken => "what was sent is no token of this server, or was not copied whole".into(),
            Self::UnknownToken => "this server knows no such token".into(),
            Self::RevokedToken => "the token was revoked".into(),
            Self::ExpiredToken => "the token has expired".into(),
            Self::TokensUnreadable => "no token can be checked now; the log of the server says why".into(),
            Self::Foreign(wrong) => (*wrong).into(),
            Self::Scope => "none of the token's scopes grants anything here".into(),
            Self::KeysUnavailable => {
                "the token cannot be checked now, since the keys of the authorization server are not to be had".into()
            }
            Self::TooMany(wait) => format!("too many requests; there is room again in {} s", whole_seconds(*wait)),
        }
    }

    /// For the log.
    pub(super) fn in_the_log(&self) -> String {
        match self {
            Self::Nothing => "it has no token".into(),
            other => other.description(),
        }
    }
}

/// What a client can do about it.
#[derive(Debug, Default)]
pub(super) struct Challenge {
    pub(super) bearer: bool,
    /// Where it is written which authorization server gives tokens.
    pub(super) metadata: Option<String>,
    /// Scopes that grant something.
    pub(super) scope: Option<String>,
    /// What a person does.
    pub(super) hint: String,
}

/// A request that is not admitted.
#[derive(Clone, Debug)]
pub struct Refused {
    pub why: Why,
    pub(super) challenge: Arc<Challenge>,
}

impl Refused {
    /// When there is room again for a client that asks too often.
    pub fn room_after(&self) -> Option<Duration> {
        match self.why {
            Why::TooMany(wait) => Some(wait),
            _ => None,
        }
    }

    /// For `WWW-Authenticate`.
    fn authenticate(&self) -> Option<HeaderValue> {
        if !self.challenge.bearer
            || !matches!(
                self.why.error(),
                "unauthorized" | "invalid_request" | "invalid_token" | "insufficient_scope"
            )
        {
            return None;
        }
        let mut parts = vec!["realm=\"lockhouse\"".to_owned()];
        if self.why != Why::Nothing {
            parts.push(format!("error=\"{}\"", self.why.error()));
            parts.push(format!("error_description=\"{}\"", self.why.description()));
        }
        parts.extend(self.challenge.scope.iter().map(|scope| format!("scope=\"{scope}\"")));
        parts.extend(self.challenge.metadata.iter().map(|url| format!("resource_metadata=\"{url}\"")));
        HeaderValue::try_from(format!("Bearer {}", parts.join(", "))).ok()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut body = json!({"error": self.why.error(), "error_description": self.why.description()});
        if !matches!(self.why, Why::TooMany(_)) {
            body["hint"] = self.challenge.hint.clone().into();
        }
        let mut response = (self.why.status(), axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(value) = self.authenticate() {
            headers.insert(WWW_AUTHENTICATE, value);
        }
        let wait = match self.why {
            Why::TooMany(wait) => Some(whole_seconds(wait)),
            Why::TokensUnreadable | Why::KeysUnavailable => Some(5),
            _ => None,
        };
        if let Some(wait) = wait {
            headers.insert(RETRY_AFTER, wait.into());
        }
        response
    }
}

/// Rounded up: who waits for so long is not too early.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
