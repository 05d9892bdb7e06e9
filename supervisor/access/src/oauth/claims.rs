//! The claims of an OAuth access token.

use serde::{Deserialize, Deserializer};

/// The claims of an OAuth access token that Lockhouse reads. The others are memberships, by which roles of the policy apply.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    pub(super) iss: String,
    pub(super) sub: String,
    #[serde(deserialize_with = "timestamp")]
    pub(super) exp: u64,
    #[serde(default, deserialize_with = "optional_timestamp")]
    pub(super) iat: Option<u64>,
    /// What the token is bound to.
    #[serde(default)]
    cnf: Option<Confirmation>,
    #[serde(default)]
    scope: Scopes,
    /// The token's scopes, in a claim that some authorization servers use instead of `scope`.
    #[serde(default)]
    scp: Scopes,
    #[serde(flatten)]
    pub(super) others: serde_json::Map<String, serde_json::Value>,
}

/// The claim `cnf` (RFC 7800).
#[derive(Debug, Deserialize)]
struct Confirmation {
    /// The thumbprint of a key (RFC 9449).
    jkt: Option<String>,
    /// The thumbprint of a certificate (RFC 8705).
    #[serde(rename = "x5t#S256")]
    certificate: Option<String>,
}

/// What a token is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binding<'a> {
    None,
    /// The key with this thumbprint, of which the sender proves the possession.
    Key(&'a str),
    /// The certificate with this thumbprint, which the client shows in the handshake of TLS.
    Certificate(&'a str),
    /// Something that this server cannot verify, or both.
    Unknown,
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
    pub(super) fn binding(&self) -> Binding<'_> {
        match &self.cnf {
            None => Binding::None,
            Some(Confirmation { jkt: Some(thumbprint), certificate: None }) => Binding::Key(thumbprint),
            Some(Confirmation { jkt: None, certificate: Some(thumbprint) }) => {
                Binding::Certificate(thumbprint)
            }
            Some(Confirmation { .. }) => Binding::Unknown,
        }
    }

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
    fn what_a_token_is_bound_to_is_parsed() {
        for (more, binding) in [
            ("", Binding::None),
            (r#", "cnf": {"jkt": "k"}"#, Binding::Key("k")),
            (r#", "cnf": {"jkt": "k", "x5t#S256": "c"}"#, Binding::Unknown),
            (r#", "cnf": {"x5t#S256": "c"}"#, Binding::Certificate("c")),
            (r#", "cnf": {"x5t": "c"}"#, Binding::Unknown),
            (r#", "cnf": {}"#, Binding::Unknown),
        ] {
            let text = format!(r#"{{"iss": "i", "sub": "s", "exp": 1{more}}}"#);
            let claims: Claims = serde_json::from_str(&text).expect("claims");
            assert_eq!(claims.binding(), binding, "{more}");
        }
        assert!(serde_json::from_str::<Claims>(r#"{"iss": "i", "sub": "s", "exp": 1, "cnf": "k"}"#).is_err());
    }

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
