//! The authorization challenge in the HTTP response of an upstream server (`WWW-Authenticate`).

use http::header::WWW_AUTHENTICATE;
use reqwest::{Response, StatusCode};
use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// The authorization challenge of a server that refuses the request's `Authorization` header, or requires one.
pub(crate) struct Challenge {
    pub(crate) status: StatusCode,
    /// The value of the response's `WWW-Authenticate` header; empty if there is none.
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

    /// Returns the scopes that the token lacks, separated by spaces and possibly empty; `None` if the server refused
    /// the token for another reason. `url` is the server's URL, which resolves relative URLs in the challenge.
    pub(crate) fn missing_scope(&self, url: &Url) -> Option<String> {
        let parameters = WWWAuthenticateParams::parse(&self.www_authenticate, url);
        parameters.is_insufficient_scope().then(|| parameters.scope.unwrap_or_default())
    }
}
