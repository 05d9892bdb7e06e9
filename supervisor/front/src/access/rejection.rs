//! The HTTP response to a request that the engine refuses to authenticate, or that exceeds its client's rate limit. It has
//! an RFC 6750 error code for programs and a sentence for people. It never repeats what the client sent.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lockhouse_messages::{AccessRefusal, Authentication};
use serde_json::json;

/// Value of the header `Retry-After` if credentials cannot be verified, in seconds.
const UNAVAILABLE_RETRY_AFTER_S: u64 = 5;

/// Why a request is rejected, with what its response needs.
#[derive(Clone, Debug)]
pub(crate) enum Rejection {
    /// The request is not authenticated. The response says how to authenticate.
    Access(AccessRefusal, Box<Authentication>),
    /// The client exceeded its request rate and may retry after this duration.
    RateLimited(Duration),
}

impl Rejection {
    /// Returns how long a client that exceeded its rate limit must wait. `None` if the request was rejected for another
    /// reason.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited(wait) => Some(*wait),
            Self::Access(..) => None,
        }
    }

    /// Returns the status, and the error code for the response body: a code of RFC 6750 or OAuth where one fits.
    fn status_and_error(&self) -> (StatusCode, &'static str) {
        let refusal = match self {
            Self::RateLimited(_) => return (StatusCode::TOO_MANY_REQUESTS, "too_many_requests"),
            Self::Access(refusal, _) => refusal,
        };
        match refusal {
            AccessRefusal::NoCredentials | AccessRefusal::UnknownConnection => {
                (StatusCode::UNAUTHORIZED, "unauthorized")
            }
            AccessRefusal::DuplicateHeader | AccessRefusal::NotBearer => {
                (StatusCode::UNAUTHORIZED, "invalid_request")
            }
            AccessRefusal::MalformedToken
            | AccessRefusal::UnknownToken
            | AccessRefusal::RevokedToken
            | AccessRefusal::ExpiredToken
            | AccessRefusal::InvalidJwt(_)
            | AccessRefusal::CredentialNotAccepted
            | AccessRefusal::EndedGrant => (StatusCode::UNAUTHORIZED, "invalid_token"),
            AccessRefusal::InvalidProof(_) => (StatusCode::UNAUTHORIZED, "invalid_dpop_proof"),
            AccessRefusal::InvalidCertificate(_) => (StatusCode::UNAUTHORIZED, "invalid_certificate"),
            AccessRefusal::Scope | AccessRefusal::MissingRole(_) => {
                (StatusCode::FORBIDDEN, "insufficient_scope")
            }
            AccessRefusal::UnlistedUser => (StatusCode::FORBIDDEN, "access_denied"),
            AccessRefusal::TokensUnreadable
            | AccessRefusal::AuthoritiesUnreadable
            | AccessRefusal::JwksUnavailable
            | AccessRefusal::EngineUnavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable")
            }
        }
    }

    /// Returns the sentence about the error for the response body.
    fn description(&self) -> Cow<'static, str> {
        match self {
            Self::Access(refusal, _) => refusal.description(),
            Self::RateLimited(wait) => {
                format!("too many requests; retry in {} s", whole_seconds(*wait)).into()
            }
        }
    }

    /// Returns the values of the `WWW-Authenticate` headers: for bearer tokens, and for tokens that are bound to a key. Empty if the
    /// server accepts no tokens, or if the request was rejected for a reason other than a missing or wrong token.
    fn www_authenticate(&self) -> Vec<HeaderValue> {
        let Self::Access(refusal, authentication) = self else { return Vec::new() };
        let (status, error) = self.status_and_error();
        let is_about_token = matches!(
            error,
            "unauthorized"
                | "invalid_request"
                | "invalid_token"
                | "invalid_dpop_proof"
                | "invalid_certificate"
                | "insufficient_scope"
        );
        if !authentication.accepts_bearer || !is_about_token {
            return Vec::new();
        }
        let mut parts = vec!["realm=\"lockhouse\"".to_owned()];
        if *refusal != AccessRefusal::NoCredentials {
            parts.push(format!("error=\"{error}\""));
            parts.push(format!("error_description=\"{}\"", self.description()));
        }
        parts.extend(authentication.scope.iter().map(|scope| format!("scope=\"{scope}\"")));
        let metadata = authentication.metadata.iter();
        parts.extend(metadata.map(|metadata| format!("resource_metadata=\"{}\"", metadata.url)));
        let bearer = format!("Bearer {}", parts.join(", "));
        let bound = authentication.proof_algorithms.iter().filter(|_| status == StatusCode::UNAUTHORIZED);
        let bound = bound.map(|algorithms| match refusal {
            AccessRefusal::InvalidProof(_) => format!("DPoP error=\"{error}\", algs=\"{algorithms}\""),
            _ => format!("DPoP algs=\"{algorithms}\""),
        });
        std::iter::once(bearer).chain(bound).filter_map(|value| HeaderValue::try_from(value).ok()).collect()
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let (status, error) = self.status_and_error();
        let mut body = json!({"error": error, "error_description": self.description()});
        if let Self::Access(_, authentication) = &self {
            body["hint"] = authentication.hint.clone().into();
        }
        let mut response = (status, axum::Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for value in self.www_authenticate() {
            headers.append(WWW_AUTHENTICATE, value);
        }
        let wait = match self {
            Self::RateLimited(wait) => Some(whole_seconds(wait)),
            Self::Access(..) => {
                (status == StatusCode::SERVICE_UNAVAILABLE).then_some(UNAVAILABLE_RETRY_AFTER_S)
            }
        };
        if let Some(wait) = wait {
            headers.insert(RETRY_AFTER, wait.into());
        }
        response
    }
}

/// Rounds a duration up to whole seconds, so that a client that waits this long does not retry too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
