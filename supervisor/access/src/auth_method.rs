//! Configuration of the authentication methods: `auth` in `[http]`.

use serde::Deserialize;
use thiserror::Error;

/// A method by which an AI client authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthMethod {
    /// A bearer token that `lockhouse token create` issued.
    Token,
    /// An access token that an OAuth authorization server issued.
    Oauth,
    /// A client certificate of TLS that an authority of the configuration issued.
    Certificate,
    /// The user id of the process at the other end of a Unix domain socket.
    Peer,
}

/// The credentials that HTTP requests must present: the setting `auth` of `[http]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawAuthMode")]
pub enum AuthMode {
    /// No authentication: every request is accepted.
    None,
    /// Requests must be authenticated by one of these methods.
    Methods(Vec<AuthMethod>),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "\"token\", \"oauth\", \"certificate\", \"peer\", a list of these, or \"none\""
)]
enum RawAuthMode {
    One(String),
    Several(Vec<String>),
}

/// Why a value of the setting `auth` is invalid.
#[derive(Debug, Error)]
enum InvalidAuthMode {
    #[error(r#"auth = "none" cannot be combined with another method: it would accept every request"#)]
    NoneAmongOthers,
    #[error(r#"auth is "token", "oauth", "certificate", "peer", a list of these, or "none""#)]
    UnknownMethod,
    #[error(r#"auth lists no method, so that every request would be rejected; leave it out for "token""#)]
    Empty,
}

impl TryFrom<RawAuthMode> for AuthMode {
    type Error = InvalidAuthMode;

    fn try_from(written: RawAuthMode) -> Result<Self, InvalidAuthMode> {
        let several = match written {
            RawAuthMode::One(none) if none == "none" => return Ok(Self::None),
            RawAuthMode::One(method) => vec![method],
            RawAuthMode::Several(methods) => methods,
        };
        let parse = |method: &String| match method.as_str() {
            "token" => Ok(AuthMethod::Token),
            "oauth" => Ok(AuthMethod::Oauth),
            "certificate" => Ok(AuthMethod::Certificate),
            "peer" => Ok(AuthMethod::Peer),
            "none" => Err(InvalidAuthMode::NoneAmongOthers),
            _ => Err(InvalidAuthMode::UnknownMethod),
        };
        let methods = several.iter().map(parse).collect::<Result<Vec<AuthMethod>, _>>()?;
        match methods.is_empty() {
            true => Err(InvalidAuthMode::Empty),
            false => Ok(AuthMode::Methods(methods)),
        }
    }
}

impl Default for AuthMode {
    fn default() -> Self {
        Self::Methods(vec![AuthMethod::Token])
    }
}

impl AuthMode {
    /// Returns whether requests are accepted without authentication.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
    pub fn has(&self, method: AuthMethod) -> bool {
        matches!(self, Self::Methods(methods) if methods.contains(&method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(text: &str) -> Result<AuthMode, toml::de::Error> {
        #[derive(Deserialize)]
        struct Written {
            auth: AuthMode,
        }
        toml::from_str::<Written>(text).map(|written| written.auth)
    }

    #[test]
    fn auth_methods_are_parsed_alone_and_in_lists() {
        assert_eq!(auth("auth = 'none'"), Ok(AuthMode::None));
        assert_eq!(auth("auth = 'peer'"), Ok(AuthMode::Methods(vec![AuthMethod::Peer])));
        assert_eq!(
            auth("auth = ['token', 'oauth']"),
            Ok(AuthMode::Methods(vec![AuthMethod::Token, AuthMethod::Oauth]))
        );
        for (text, expected) in [
            ("auth = ['token', 'none']", "cannot be combined"),
            ("auth = ['none']", "cannot be combined"),
            ("auth = []", "would be rejected"),
            ("auth = 'password'", "auth is \"token\""),
            ("auth = 1", "a list of these"),
        ] {
            let error = auth(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(AuthMode::default().has(AuthMethod::Token) && !AuthMode::None.has(AuthMethod::Token));
    }
}
