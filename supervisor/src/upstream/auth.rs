//! What a server over HTTP gets as `Authorization`.

use http::HeaderValue;
use http::header::WWW_AUTHENTICATE;
use reqwest::{Response, StatusCode};

use super::definition::{Authorization, HttpEndpoint};
use super::http::{HttpFault, Kind};
use super::secrets::Secrets;

/// A refusal of what was sent as `Authorization`, or of its absence.
pub(super) struct Challenge {
    status: StatusCode,
    /// What the server says that it wants.
    wanted: String,
}

impl Challenge {
    /// `None` if the answer is something else.
    pub(super) fn of(response: &Response) -> Option<Self> {
        let wanted = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let status = response.status();
        let is_one =
            status == StatusCode::UNAUTHORIZED || (status == StatusCode::FORBIDDEN && wanted.is_some());
        is_one.then(|| Self { status, wanted: wanted.unwrap_or_default().to_owned() })
    }
}

/// Where the tokens for one server come from.
pub(super) struct Authority {
    fixed: Option<HeaderValue>,
    secrets: Secrets,
}

impl Authority {
    pub(super) fn new(endpoint: &HttpEndpoint, secrets: Secrets) -> Result<Self, HttpFault> {
        let fixed = match &endpoint.authorization {
            Authorization::Bearer(token) => Some(bearer(token)?),
            _ => None,
        };
        Ok(Self { fixed, secrets })
    }

    /// What to send now.
    pub(super) async fn token(&self) -> Result<Option<HeaderValue>, HttpFault> {
        Ok(self.fixed.clone())
    }

    /// What to send in place of what was refused.
    pub(super) async fn renewed(
        &self,
        _refused: Option<HeaderValue>,
        challenge: &Challenge,
    ) -> Result<HeaderValue, HttpFault> {
        Err(self.refused(challenge))
    }

    /// There is nothing else to send.
    pub(super) fn refused(&self, challenge: &Challenge) -> HttpFault {
        let Challenge { status, wanted } = challenge;
        let reason = match self.fixed {
            Some(_) => format!("it refuses the token that is configured for it (HTTP {})", status.as_u16()),
            None => format!("it refuses requests without authorization (HTTP {})", status.as_u16()),
        };
        HttpFault::new(Kind::Unauthorized, reason, &self.redact(wanted))
    }

    /// The text without tokens.
    pub(super) fn redact(&self, text: &str) -> String {
        self.secrets.redact(text)
    }
}

fn bearer(token: &str) -> Result<HeaderValue, HttpFault> {
    let told = |_| HttpFault::new(Kind::Unusable, "its token has characters that HTTP does not allow", "");
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(told)?;
    value.set_sensitive(true);
    Ok(value)
}
