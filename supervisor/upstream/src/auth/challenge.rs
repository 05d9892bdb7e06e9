//! What a server says when it refuses a request for want of authorization.

use http::header::WWW_AUTHENTICATE;
use reqwest::{Response, StatusCode};
use rmcp::transport::auth::WWWAuthenticateParams;
use url::Url;

/// A refusal of what was sent as `Authorization`, or of its absence.
pub(crate) struct Challenge {
    pub(crate) status: StatusCode,
    /// What the server says that it wants.
    pub(crate) wanted: String,
}

impl Challenge {
    /// `None` if the answer is something else.
    pub(crate) fn of(response: &Response) -> Option<Self> {
        let wanted = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let status = response.status();
        let is_one =
            status == StatusCode::UNAUTHORIZED || (status == StatusCode::FORBIDDEN && wanted.is_some());
        is_one.then(|| Self { status, wanted: wanted.unwrap_or_default().to_owned() })
    }

    /// The scopes that the token lacks, if that is what is wrong with it.
    pub(crate) fn lacking(&self, url: &Url) -> Option<String> {
        let parameters = WWWAuthenticateParams::parse(&self.wanted, url);
        parameters.is_insufficient_scope().then(|| parameters.scope.unwrap_or_default())
    }
}
