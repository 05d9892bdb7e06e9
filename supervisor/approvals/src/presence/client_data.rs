//! The JSON that a browser makes for a key to sign: <https://www.w3.org/TR/webauthn-2/#dictionary-client-data>.

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;

use super::PresenceError;

const ORIGIN: &str = "http://localhost:";

/// What a page has asked a key for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ceremony {
    Create,
    Get,
}

impl Ceremony {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "webauthn.create",
            Self::Get => "webauthn.get",
        }
    }
}

/// The JSON of a browser, with the members that matter here.
#[derive(Debug, Deserialize)]
pub(super) struct ClientData {
    r#type: String,
    challenge: String,
    origin: String,
    #[serde(rename = "crossOrigin", default)]
    is_cross_origin: bool,
}

impl ClientData {
    pub(super) fn parse(json: &[u8]) -> Result<Self, PresenceError> {
        serde_json::from_slice(json).map_err(|_| PresenceError::Malformed)
    }

    pub(super) fn challenge(&self) -> Result<[u8; 32], PresenceError> {
        let decoded = BASE64URL_NOPAD.decode(self.challenge.as_bytes()).ok();
        decoded.and_then(|bytes| bytes.try_into().ok()).ok_or(PresenceError::Malformed)
    }

    /// Verifies what the page has asked for, and that it is a page of `localhost` at a port that `is_page` accepts.
    pub(super) fn verify(
        &self,
        ceremony: Ceremony,
        is_page: impl FnOnce(u16) -> bool,
    ) -> Result<(), PresenceError> {
        if self.r#type != ceremony.as_str() {
            return Err(PresenceError::OtherCeremony);
        }
        let port = self.origin.strip_prefix(ORIGIN).and_then(|port| port.parse::<u16>().ok());
        // Only one way of writing a port is that of a browser.
        let port = port.filter(|port| self.origin == format!("{ORIGIN}{port}"));
        match port.is_some_and(is_page) && !self.is_cross_origin {
            true => Ok(()),
            false => Err(PresenceError::OtherOrigin),
        }
    }
}
