//! What a client claims about a request to identify it in its own logs: the ids of HTTP headers, and the trace context.
//! A client can send any value, so no decision may depend on one. The audit log and the log record them.

use serde::{Deserialize, Serialize};

/// Maximum length of a claim in characters. A longer claim is dropped, because a part of an id identifies nothing.
const CHARS_MAX: usize = 128;

/// The ids that a client gave a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestClaims {
    /// The header `X-Correlation-ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Claim>,
    /// The header `X-Request-ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Claim>,
    /// `traceparent` of the request's `_meta`, or else the header `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<Claim>,
}

/// One id that a client gave a request: 1 to [`CHARS_MAX`] visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Claim(String);

impl Claim {
    /// Creates a claim. Returns `None` if the text is empty, too long, or has other characters.
    pub fn new(text: &str) -> Option<Self> {
        let is_valid =
            (1..=CHARS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Claim {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text).ok_or("a claim has 1 to 128 visible ASCII characters")
    }
}

impl RequestClaims {
    /// Returns the claims with the names that records use for them.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("correlation_id", &self.correlation_id),
            ("request_id", &self.request_id),
            ("traceparent", &self.traceparent),
        ];
        all.into_iter().filter_map(|(name, claim)| Some((name, claim.as_ref()?.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_claim_is_none() {
        let long = "a".repeat(CHARS_MAX);
        for (text, is_valid) in
            [("abc-1", true), (&long, true), ("", false), ("a b", false), ("a\tb", false), ("ä", false)]
        {
            assert_eq!(Claim::new(text).is_some(), is_valid, "{text:?}");
            let json = serde_json::to_string(text).expect("JSON");
            assert_eq!(serde_json::from_str::<Claim>(&json).is_ok(), is_valid, "{text:?}");
        }
        assert_eq!(Claim::new(&format!("{long}a")), None);
    }
}
