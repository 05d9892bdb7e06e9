//! Who a request is from. Every request proves it anew: what was proven before counts for nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use lockhouse_base::client_allowance::Allowance;
use lockhouse_base::principal::{Owner, Principal};
use lockhouse_policies::Rate;
use thiserror::Error;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::auth::{Auth, Way};
use super::failures::Failures;
use super::oauth::{OauthSettings, ResourceServer};
use super::peer::{Peer, Users};
use super::refused::{Challenge, Refused, Why};
use super::token;
use super::tokens::{TokenFile, Tokens};

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

/// What is missing for a way that was configured.
#[derive(Debug, Error)]
pub enum AccessError {
    #[error("there is no place for tokens: set HOME, XDG_STATE_HOME or STATE_DIRECTORY, or tokens of [http]")]
    NoTokenPlace,
    #[error("auth = \"oauth\" needs [http.oauth] with issuer, audience and scopes")]
    NoOauth,
    /// Keys of an authorization server come over it.
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] reqwest::Error),
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
    pub fn new(settings: AccessSettings) -> Result<Arc<Self>, AccessError> {
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
    ) -> Result<Self, AccessError> {
        let tokens = match (auth.has(Way::Token), tokens) {
            (false, _) => None,
            (true, Some(file)) => Some(looked_after(file, over)),
            (true, None) => return Err(AccessError::NoTokenPlace),
        };
        let oauth = match (auth.has(Way::Oauth), oauth) {
            (false, _) => None,
            (true, Some(settings)) => Some(ResourceServer::new(settings)?),
            (true, None) => return Err(AccessError::NoOauth),
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
