//! The claims of an OAuth access token.

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

/// The value of a scope claim: one string with the scopes separated by spaces, or a list of scopes.
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
