//! The authorization challenge in a server's HTTP response (`WWW-Authenticate`).

use http::header::WWW_AUTHENTICATE;
use reqwest::{Response, StatusCode};
use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// A response that refuses the request's `Authorization` header, or requires one.
pub(crate) struct Challenge {
    pub(crate) status: StatusCode,
    /// The value of `WWW-Authenticate`.
    pub(crate) www_authenticate: String,
}

impl Challenge {
    /// Returns the challenge of a response with status 401, or 403 with `WWW-Authenticate`; `None` for other
    /// responses.
    pub(crate) fn from_response(response: &Response) -> Option<Self> {
        let www_authenticate = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let status = response.status();
        let is_one = status == StatusCode::UNAUTHORIZED
            || (status == StatusCode::FORBIDDEN && www_authenticate.is_some());
        is_one.then(|| Self { status, www_authenticate: www_authenticate.unwrap_or_default().to_owned() })
    }

    /// Returns the scopes that the token lacks, if the server refused it for insufficient scope.
    pub(crate) fn missing_scope(&self, url: &Url) -> Option<String> {
        let parameters = WWWAuthenticateParams::parse(&self.www_authenticate, url);
        parameters.is_insufficient_scope().then(|| parameters.scope.unwrap_or_default())
    }
}
