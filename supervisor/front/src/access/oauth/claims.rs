//! The claims of an OAuth access token, and error texts for tokens that fail validation.

use jsonwebtoken::errors::ErrorKind;
use serde::{Deserialize, Deserializer};

/// The claims of an OAuth access token that Lockhouse reads. Other claims are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub(super) iss: String,
    pub(super) sub: String,
    #[serde(deserialize_with = "timestamp")]
    pub(super) exp: u64,
    #[serde(default, deserialize_with = "optional_timestamp")]
    pub(super) iat: Option<u64>,
    #[serde(default)]
    scope: Scopes,
    /// The token's scopes, in a claim that some authorization servers use instead of `scope`.
    #[serde(default)]
    scp: Scopes,
}

/// The value of a scope claim: a string with spaces, or a list.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
enum Scopes {
    Text(String),
    List(Vec<String>),
    #[default]
    None,
}

impl Scopes {
    fn all(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => text.split_ascii_whitespace().collect(),
            Self::List(list) => list.iter().map(String::as_str).collect(),
            Self::None => Vec::new(),
        }
    }
}

impl Claims {
    pub(super) fn scopes(&self) -> impl Iterator<Item = &str> {
        self.scope.all().into_iter().chain(self.scp.all())
    }
}

/// Deserializes a NumericDate: seconds since 1970, possibly with a fraction, which is dropped.
fn timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Ok(seconds.max(0.0) as u64)
}

fn optional_timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    timestamp(deserializer).map(Some)
}

/// Describes why an OAuth access token failed validation, for the client and the log.
pub(super) fn describe_error(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token has another issuer",
        ErrorKind::InvalidAudience => "the token is for another server, according to its audience",
        ErrorKind::InvalidSignature => "the signature of the token is invalid",
        ErrorKind::InvalidAlgorithm => "the token is signed with an algorithm that its key does not permit",
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "aud" => "the token has no audience",
            "exp" => "the token has no expiry",
            "iss" => "the token has no issuer",
            _ => "the token has no subject",
        },
        _ => "the token is malformed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_parsed_as_string_and_list() {
        let scopes = |more: &str| {
            let text = format!(r#"{{"iss": "i", "sub": "s", "exp": 1.5, "aud": []{more}}}"#);
            let claims: Claims = serde_json::from_str(&text).expect("claims");
            claims.scopes().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(scopes(r#", "scope": "a b""#), "a b");
        assert_eq!(scopes(r#", "scp": ["a", "b"]"#), "a b");
        assert_eq!(scopes(r#", "scp": "a b", "scope": ["c"]"#), "c a b");
        assert_eq!(scopes(r#", "iat": 12, "other": {}"#), "");
        assert!(serde_json::from_str::<Claims>(r#"{"iss": ["i"], "sub": "s", "exp": 1}"#).is_err());
    }
}
