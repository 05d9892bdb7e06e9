//! Reasons why an HTTP request is not authenticated, and the response for each reason. A response has an
//! RFC 6750 error code for programs and a sentence for people. It never repeats what the client sent.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// The reason why authentication or the rate limit rejects an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// The request has no header `Authorization`, and its connection identifies no user that may authenticate without
    /// one.
    NoCredentials,
    /// The request has no header `Authorization`, its Unix domain socket connection belongs to a user that the
    /// configuration does not allow, and the server accepts no bearer tokens.
    UnlistedUser,
    DuplicateHeader,
    NotBearer,
    /// The token starts like a Lockhouse token but is malformed, or it is another kind of token and no authorization
    /// server is configured.
    MalformedToken,
    UnknownToken,
    RevokedToken,
    ExpiredToken,
    /// The token file cannot be read, or other users may write to it.
    TokensUnreadable,
    /// The OAuth access token is invalid, for this reason.
    InvalidJwt(&'static str),
    /// None of the OAuth token's scopes is in the setting `scopes` of `[http.oauth]`.
    Scope,
    /// The JSON Web Key Set of the authorization server cannot be fetched, and no recent one is cached.
    JwksUnavailable,
    /// The client exceeded its request rate and may retry after this duration.
    RateLimited(Duration),
}

impl AuthError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Scope | Self::UnlistedUser => StatusCode::FORBIDDEN,
            Self::TokensUnreadable | Self::JwksUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// Returns the error code for the response body: a code of RFC 6750 or OAuth where one fits. The header
    /// `WWW-Authenticate` repeats it, unless the request had no credentials.
    fn error(&self) -> &'static str {
        match self {
            Self::NoCredentials => "unauthorized",
            Self::DuplicateHeader | Self::NotBearer => "invalid_request",
            Self::Scope => "insufficient_scope",
            Self::UnlistedUser => "access_denied",
            Self::TokensUnreadable | Self::JwksUnavailable => "temporarily_unavailable",
            Self::RateLimited(_) => "too_many_requests",
            _ => "invalid_token",
        }
    }

    /// Returns the sentence about the error for the response body and the service log.
    fn description(&self) -> String {
        match self {
            Self::NoCredentials => {
                "this server requires authentication: send the header Authorization: Bearer TOKEN".into()
            }
            Self::UnlistedUser => "this user of the server's host is not allowed to use this server".into(),
            Self::DuplicateHeader => "there is more than one Authorization header".into(),
            Self::NotBearer => "the Authorization header is not of the form: Bearer TOKEN".into(),
            Self::MalformedToken => {
                "this is not a token of this server, or it was not copied completely".into()
            }
            Self::UnknownToken => "this server does not know this token".into(),
            Self::RevokedToken => "the token was revoked".into(),
            Self::ExpiredToken => "the token has expired".into(),
            Self::TokensUnreadable => "no token can be checked now; the log of the server says why".into(),
            Self::InvalidJwt(wrong) => (*wrong).into(),
            Self::Scope => "none of the token's scopes grants anything here".into(),
            Self::JwksUnavailable => {
                "the token cannot be checked now, since the keys of the authorization server are unavailable"
                    .into()
            }
            Self::RateLimited(wait) => format!("too many requests; retry in {} s", whole_seconds(*wait)),
        }
    }

    /// Returns the reason of the rejection, as the service log states it.
    pub(super) fn log_message(&self) -> String {
        match self {
            Self::NoCredentials => "it has no token".into(),
            other => other.description(),
        }
    }
}

/// Tells a client how to authenticate: content for the header `WWW-Authenticate` and for the response body.
#[derive(Debug, Default)]
pub(super) struct Challenge {
    pub(super) bearer: bool,
    /// URL of the protected resource metadata (RFC 9728), which names the authorization server. `None` without OAuth.
    pub(super) metadata: Option<String>,
    /// OAuth scopes that grant access, separated by spaces. `None` without OAuth.
    pub(super) scope: Option<String>,
    /// Instructions for the user on how to get access, such as the command that creates a token.
    pub(super) hint: String,
}

/// The response to a request that was not authenticated or that exceeded its rate limit.
#[derive(Clone, Debug)]
pub struct Rejection {
    pub error: AuthError,
    pub(super) challenge: Arc<Challenge>,
}

impl Rejection {
    /// Returns how long a client that exceeded its rate limit must wait. `None` if the request was rejected for another
    /// reason.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.error {
            AuthError::RateLimited(wait) => Some(wait),
            _ => None,
        }
    }

    /// Returns the value of the `WWW-Authenticate` header. Returns `None` if the server accepts no bearer tokens, or if
    /// the request was rejected for a reason other than a missing or wrong bearer token.
    fn www_authenticate(&self) -> Option<HeaderValue> {
        if !self.challenge.bearer
            || !matches!(
                self.error.error(),
                "unauthorized" | "invalid_request" | "invalid_token" | "insufficient_scope"
            )
        {
            return None;
        }
        let mut parts = vec!["realm=\"lockhouse\"".to_owned()];
        if self.error != AuthError::NoCredentials {
            parts.push(format!("error=\"{}\"", self.error.error()));
            parts.push(format!("error_description=\"{}\"", self.error.description()));
        }
        parts.extend(self.challenge.scope.iter().map(|scope| format!("scope=\"{scope}\"")));
        parts.extend(self.challenge.metadata.iter().map(|url| format!("resource_metadata=\"{url}\"")));
        HeaderValue::try_from(format!("Bearer {}", parts.join(", "))).ok()
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let mut body = json!({"error": self.error.error(), "error_description": self.error.description()});
        if !matches!(self.error, AuthError::RateLimited(_)) {
            body["hint"] = self.challenge.hint.clone().into();
        }
        let mut response = (self.error.status(), axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(value) = self.www_authenticate() {
            headers.insert(WWW_AUTHENTICATE, value);
        }
        let wait = match self.error {
            AuthError::RateLimited(wait) => Some(whole_seconds(wait)),
            AuthError::TokensUnreadable | AuthError::JwksUnavailable => Some(5),
            _ => None,
        };
        if let Some(wait) = wait {
            headers.insert(RETRY_AFTER, wait.into());
        }
        response
    }
}

/// Rounds a duration up to whole seconds, so that a client that waits this long does not retry too early.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
