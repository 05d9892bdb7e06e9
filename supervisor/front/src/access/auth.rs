//! What clients must prove, as it is configured.

use serde::Deserialize;
use thiserror::Error;

/// A way to prove who one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// One of our own tokens.
    Token,
    /// The token of an authorization server.
    Oauth,
    /// Being a user of this machine, at the other end of a Unix domain socket.
    Peer,
}

/// What a client must prove before anything of its requests is heard.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenAuth")]
pub enum Auth {
    /// Nothing.
    None,
    /// Who it is, in any of these ways.
    Ways(Vec<Way>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "\"token\", \"oauth\", \"peer\", a list of these, or \"none\"")]
enum WrittenAuth {
    One(String),
    Several(Vec<String>),
}

/// What is written of `auth` cannot be meant.
#[derive(Debug, Error)]
enum InvalidAuth {
    #[error(r#"auth = "none" stands alone: beside another way it would let everybody in"#)]
    NoneAmongOthers,
    #[error(r#"auth is "token", "oauth", "peer", a list of these, or "none""#)]
    UnknownWay,
    #[error(r#"auth names no way: nobody could come in; leave it out for "token""#)]
    Empty,
}

impl TryFrom<WrittenAuth> for Auth {
    type Error = InvalidAuth;

    fn try_from(written: WrittenAuth) -> Result<Self, InvalidAuth> {
        let several = match written {
            WrittenAuth::One(none) if none == "none" => return Ok(Self::None),
            WrittenAuth::One(way) => vec![way],
            WrittenAuth::Several(ways) => ways,
        };
        let way = |way: &String| match way.as_str() {
            "token" => Ok(Way::Token),
            "oauth" => Ok(Way::Oauth),
            "peer" => Ok(Way::Peer),
            "none" => Err(InvalidAuth::NoneAmongOthers),
            _ => Err(InvalidAuth::UnknownWay),
        };
        let ways = several.iter().map(way).collect::<Result<Vec<Way>, _>>()?;
        match ways.is_empty() {
            true => Err(InvalidAuth::Empty),
            false => Ok(Self::Ways(ways)),
        }
    }
}

impl Default for Auth {
    fn default() -> Self {
        Self::Ways(vec![Way::Token])
    }
}

impl Auth {
    /// Whether everybody is let in.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
    pub fn has(&self, way: Way) -> bool {
        matches!(self, Self::Ways(ways) if ways.contains(&way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(text: &str) -> Result<Auth, toml::de::Error> {
        #[derive(Deserialize)]
        struct Written {
            auth: Auth,
        }
        toml::from_str::<Written>(text).map(|written| written.auth)
    }

    #[test]
    fn ways_are_named_alone_or_together() {
        assert_eq!(auth("auth = 'none'"), Ok(Auth::None));
        assert_eq!(auth("auth = 'peer'"), Ok(Auth::Ways(vec![Way::Peer])));
        assert_eq!(auth("auth = ['token', 'oauth']"), Ok(Auth::Ways(vec![Way::Token, Way::Oauth])));
        for (text, told) in [
            ("auth = ['token', 'none']", "stands alone"),
            ("auth = ['none']", "stands alone"),
            ("auth = []", "nobody could come in"),
            ("auth = 'password'", "auth is \"token\""),
            ("auth = 1", "a list of these"),
        ] {
            let error = auth(text).expect_err(text).to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
        assert!(Auth::default().has(Way::Token) && !Auth::None.has(Way::Token));
    }
}
