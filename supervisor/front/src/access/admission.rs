//! Who a request is from. Every request proves it anew: what was proven before counts for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use lockhouse_base::client_allowance::Allowance;
use lockhouse_base::principal::{Owner, Principal};
use lockhouse_policies::Rate;
use serde::Deserialize;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::failures::Failures;
use super::oauth::{OauthSettings, ResourceServer};
use super::peer::{Peer, Users};
use super::refused::{Challenge, Refused, Why};
use super::token;
use super::tokens::{TokenFile, Tokens};

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

impl TryFrom<WrittenAuth> for Auth {
    type Error = String;

    fn try_from(written: WrittenAuth) -> Result<Self, String> {
        let several = match written {
            WrittenAuth::One(none) if none == "none" => return Ok(Self::None),
            WrittenAuth::One(way) => vec![way],
            WrittenAuth::Several(ways) => ways,
        };
        let way = |way: &String| match way.as_str() {
            "token" => Ok(Way::Token),
            "oauth" => Ok(Way::Oauth),
            "peer" => Ok(Way::Peer),
            "none" => {
                Err("auth = \"none\" stands alone: beside another way it would let everybody in".to_owned())
            }
            _ => Err("auth is \"token\", \"oauth\", \"peer\", a list of these, or \"none\"".to_owned()),
        };
        let ways = several.iter().map(way).collect::<Result<Vec<Way>, String>>()?;
        match ways.is_empty() {
            true => Err("auth names no way: nobody could come in; leave it out for \"token\"".to_owned()),
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

/// Who may come in.
#[derive(Clone, Debug)]
pub struct AccessSettings {
    pub auth: Auth,
    /// None where no state can be kept.
    pub tokens: Option<TokenFile>,
    /// There where `auth` has OAuth.
    pub oauth: Option<OauthSettings>,
    pub users: Users,
    /// Requests of one client, of any kind, each with what its body costs besides.
    pub requests: Rate,
}

/// Who stands at the door.
#[derive(Debug)]
pub struct Access {
    /// None where everybody is let in.
    proofs: Option<Proofs>,
    requests: Allowance,
    failures: Failures,
    /// Ends what looks after tokens.
    _over: DropGuard,
}

#[derive(Debug)]
struct Proofs {
    tokens: Option<Arc<Tokens>>,
    oauth: Option<ResourceServer>,
    users: Option<Users>,
    challenge: Arc<Challenge>,
}

impl Access {
    /// # Errors
    /// What is missing for a way that was configured.
    pub fn new(settings: AccessSettings) -> Result<Arc<Self>, String> {
        let AccessSettings { auth, tokens, oauth, users, requests } = settings;
        let over = CancellationToken::new();
        let proofs = match auth.is_none() {
            true => None,
            false => Some(Proofs::new(&auth, tokens, oauth, users, &over)?),
        };
        let (requests, failures) = (Allowance::new(requests), Failures::default());
        Ok(Arc::new(Self { proofs, requests, failures, _over: over.drop_guard() }))
    }

    /// Who a request is from, by its head and by who made the connection.
    ///
    /// # Errors
    /// What to answer instead.
    pub async fn admit(&self, head: &Parts, peer: Option<&Peer>) -> Result<Principal, Refused> {
        let principal = match &self.proofs {
            None => Principal::anybody(),
            Some(proofs) => proofs.prove(head, peer).await.map_err(|why| {
                self.failures.note(&why, peer);
                proofs.refused(why)
            })?,
        };
        let taken = self.requests.take(principal.owner(), Instant::now());
        taken.map_err(|wait| self.too_many(wait))?;
        Ok(principal)
    }

    /// Whether this client's requests have cost no more than it may use.
    ///
    /// # Errors
    /// What to answer instead.
    pub fn check_debt(&self, owner: Owner) -> Result<(), Refused> {
        self.requests.debt(owner, Instant::now()).map_or(Ok(()), |wait| Err(self.too_many(wait)))
    }

    /// Takes what a request costs besides being one, in units of `requests`.
    pub fn charge(&self, owner: Owner, units: u32) {
        self.requests.charge(owner, units, Instant::now());
    }

    fn too_many(&self, wait: Duration) -> Refused {
        let challenge = self.proofs.as_ref().map(|proofs| proofs.challenge.clone()).unwrap_or_default();
        Refused { why: Why::TooMany(wait), challenge }
    }

    /// What anybody may read, to find out where tokens come from.
    pub fn metadata(&self) -> Router {
        let oauth = self.proofs.as_ref().and_then(|proofs| proofs.oauth.as_ref());
        oauth.map(ResourceServer::metadata).unwrap_or_default()
    }
}

impl Proofs {
    fn new(
        auth: &Auth,
        tokens: Option<TokenFile>,
        oauth: Option<OauthSettings>,
        users: Users,
        over: &CancellationToken,
    ) -> Result<Self, String> {
        let tokens = match (auth.has(Way::Token), tokens) {
            (false, _) => None,
            (true, Some(file)) => Some(looked_after(file, over)),
            (true, None) => {
                return Err("there is no place for tokens: set HOME, XDG_STATE_HOME or STATE_DIRECTORY, or tokens of [http]".into());
            }
        };
        let oauth = match (auth.has(Way::Oauth), oauth) {
            (false, _) => None,
            (true, Some(settings)) => Some(ResourceServer::new(settings)?),
            (true, None) => {
                return Err("auth = \"oauth\" needs [http.oauth] with issuer, audience and scopes".into());
            }
        };
        let users = auth.has(Way::Peer).then_some(users);
        let challenge = Arc::new(Challenge {
            bearer: tokens.is_some() || oauth.is_some(),
            metadata: oauth.as_ref().map(ResourceServer::metadata_url),
            scope: oauth.as_ref().map(ResourceServer::scopes),
            hint: hint(tokens.is_some(), oauth.as_ref(), users.is_some()),
        });
        Ok(Self { tokens, oauth, users, challenge })
    }

    /// A token that was sent must count; only who sends none is known by the connection.
    async fn prove(&self, head: &Parts, peer: Option<&Peer>) -> Result<Principal, Why> {
        let mut sent = head.headers.get_all(AUTHORIZATION).iter();
        let Some(authorization) = sent.next() else { return self.by_connection(peer) };
        if sent.next().is_some() {
            return Err(Why::SeveralHeaders);
        }
        let sent = authorization.to_str().map_err(|_| Why::NotBearer)?;
        let (scheme, token) = sent.split_once(' ').ok_or(Why::NotBearer)?;
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        let token = token.trim_matches(' ');
        if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || !token.bytes().all(is_token) {
            return Err(Why::NotBearer);
        }
        match (&self.tokens, &self.oauth) {
            (Some(tokens), _) if token.starts_with(token::PREFIX) => tokens.principal(token),
            (_, Some(oauth)) => oauth.principal(token).await,
            _ => Err(Why::NoToken),
        }
    }

    fn by_connection(&self, peer: Option<&Peer>) -> Result<Principal, Why> {
        match (&self.users, peer) {
            (Some(users), Some(Peer::Unix { uid, .. })) => match users.principal(*uid) {
                Some(principal) => Ok(principal),
                None if self.challenge.bearer => Err(Why::Nothing),
                None => Err(Why::Stranger),
            },
            _ => Err(Why::Nothing),
        }
    }

    fn refused(&self, why: Why) -> Refused {
        Refused { why, challenge: self.challenge.clone() }
    }
}

fn looked_after(file: TokenFile, over: &CancellationToken) -> Arc<Tokens> {
    let tokens = Arc::new(Tokens::new(file));
    let (watched, over) = (tokens.clone(), over.clone());
    tokio::spawn(async move { over.run_until_cancelled(watched.watch()).await });
    tokens
}

/// What a person does who wants to come in.
fn hint(tokens: bool, oauth: Option<&ResourceServer>, users: bool) -> String {
    let ways = [
        tokens.then(|| "`lockhouse token create NAME` on the machine of the server makes a token".to_owned()),
        oauth.map(|oauth| format!("{} gives tokens", oauth.issuer())),
        users.then(|| "a user of the machine comes in through its Unix domain socket".to_owned()),
    ];
    ways.into_iter().flatten().collect::<Vec<_>>().join("; or: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auth(text: &str) -> Result<Auth, String> {
        #[derive(Deserialize)]
        struct Written {
            auth: Auth,
        }
        toml::from_str::<Written>(text).map(|written| written.auth).map_err(|error| error.to_string())
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
            let error = auth(text).expect_err(text);
            assert!(error.contains(told), "{text}: {error}");
        }
        assert!(Auth::default().has(Way::Token) && !Auth::None.has(Way::Token));
    }
}
