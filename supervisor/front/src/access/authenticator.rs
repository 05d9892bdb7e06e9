//! Authenticates HTTP requests. Each request is authenticated on its own; earlier requests of the connection do not
//! count.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use lockhouse_base::client_rate_limiter::ClientRateLimiter;
use lockhouse_base::principal::{Owner, Principal};
use lockhouse_policies::Rate;
use thiserror::Error;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::auth_error::{AuthError, Challenge, Rejection};
use super::auth_method::{AuthMethod, AuthMode};
use super::failure_log::FailureLog;
use super::oauth::{OauthSettings, ResourceServer};
use super::peer_credentials::{AllowedUsers, Peer};
use super::token_format;
use super::token_store::{TokenFile, TokenStore};

/// Settings for the authentication of HTTP requests, and the rate limit of each client.
#[derive(Clone, Debug)]
pub struct AuthSettings {
    pub mode: AuthMode,
    /// The token file; `None` if the host has no state directory.
    pub tokens: Option<TokenFile>,
    /// Settings of `[http.oauth]`; required if `auth` includes `oauth`.
    pub oauth: Option<OauthSettings>,
    pub users: AllowedUsers,
    /// Rate limit for the requests of one client. A request with a large body counts more than once.
    pub requests: Rate,
}

/// Why authentication cannot be set up as configured.
#[derive(Debug, Error)]
pub enum AuthSetupError {
    #[error(
        "there is no directory for the token file: set HOME, XDG_STATE_HOME or STATE_DIRECTORY, or tokens of [http]"
    )]
    NoTokenPath,
    #[error("auth = \"oauth\" needs [http.oauth] with issuer, audience and scopes")]
    NoOauth,
    /// The TLS client that fetches the keys of the authorization server cannot be set up.
    #[error("TLS cannot be used: {0}")]
    Tls(#[from] reqwest::Error),
}

/// Authenticates HTTP requests and applies the rate limit of each client.
#[derive(Debug)]
pub struct Authenticator {
    /// The verifiers of the configured authentication methods. `None` if `auth = "none"`.
    verifiers: Option<Verifiers>,
    request_allowance: ClientRateLimiter,
    failures: FailureLog,
    /// When the authenticator is dropped, stops the task that watches the token file.
    _stop_token_watch: DropGuard,
}

#[derive(Debug)]
struct Verifiers {
    tokens: Option<Arc<TokenStore>>,
    oauth: Option<ResourceServer>,
    users: Option<AllowedUsers>,
    challenge: Arc<Challenge>,
}

impl Authenticator {
    pub fn new(settings: AuthSettings) -> Result<Arc<Self>, AuthSetupError> {
        let AuthSettings { mode, tokens, oauth, users, requests } = settings;
        let stop = CancellationToken::new();
        let verifiers = match mode.is_none() {
            true => None,
            false => Some(Verifiers::new(&mode, tokens, oauth, users, &stop)?),
        };
        let (request_allowance, failures) = (ClientRateLimiter::new(requests), FailureLog::default());
        Ok(Arc::new(Self { verifiers, request_allowance, failures, _stop_token_watch: stop.drop_guard() }))
    }

    /// Authenticates a request by its head and the peer of its connection, and counts the request against the client's
    /// rate limit.
    ///
    /// # Errors
    /// The response to send, if the request is not authenticated or exceeds the rate limit.
    pub async fn authenticate(&self, head: &Parts, peer: Option<&Peer>) -> Result<Principal, Rejection> {
        let principal = match &self.verifiers {
            None => Principal::anonymous(),
            Some(verifiers) => verifiers.verify(head, peer).await.map_err(|error| {
                self.failures.record(&error, peer);
                verifiers.rejection(error)
            })?,
        };
        let charged = self.request_allowance.take(principal.owner(), Instant::now());
        charged.map_err(|wait| self.rate_limited(wait))?;
        Ok(principal)
    }

    /// Checks whether a client is over its rate limit because of the size of its earlier requests (see
    /// [`Self::charge`]).
    ///
    /// # Errors
    /// The response to send, if the client is over its limit.
    pub fn check_debt(&self, owner: Owner) -> Result<(), Rejection> {
        self.request_allowance
            .debt_wait(owner, Instant::now())
            .map_or(Ok(()), |wait| Err(self.rate_limited(wait)))
    }

    /// Charges a client for the size of a request, in units of the client's rate limit, in addition to the unit that
    /// [`Self::authenticate`] charges for each request.
    pub fn charge(&self, owner: Owner, units: u32) {
        self.request_allowance.charge(owner, units, Instant::now());
    }

    fn rate_limited(&self, wait: Duration) -> Rejection {
        let challenge =
            self.verifiers.as_ref().map(|verifiers| verifiers.challenge.clone()).unwrap_or_default();
        Rejection { error: AuthError::RateLimited(wait), challenge }
    }

    /// Returns a router that serves the protected resource metadata (RFC 9728) without authentication. It has no route
    /// if OAuth is not configured.
    pub fn metadata(&self) -> Router {
        let oauth = self.verifiers.as_ref().and_then(|verifiers| verifiers.oauth.as_ref());
        oauth.map(ResourceServer::metadata).unwrap_or_default()
    }
}

impl Verifiers {
    fn new(
        mode: &AuthMode,
        tokens: Option<TokenFile>,
        oauth: Option<OauthSettings>,
        users: AllowedUsers,
        stop: &CancellationToken,
    ) -> Result<Self, AuthSetupError> {
        let tokens = match (mode.has(AuthMethod::Token), tokens) {
            (false, _) => None,
            (true, Some(file)) => Some(start_token_store(file, stop)),
            (true, None) => return Err(AuthSetupError::NoTokenPath),
        };
        let oauth = match (mode.has(AuthMethod::Oauth), oauth) {
            (false, _) => None,
            (true, Some(settings)) => Some(ResourceServer::new(settings)?),
            (true, None) => return Err(AuthSetupError::NoOauth),
        };
        let users = mode.has(AuthMethod::Peer).then_some(users);
        let challenge = Arc::new(Challenge {
            bearer: tokens.is_some() || oauth.is_some(),
            metadata: oauth.as_ref().map(ResourceServer::metadata_url),
            scope: oauth.as_ref().map(ResourceServer::scopes),
            hint: access_hint(tokens.is_some(), oauth.as_ref(), users.is_some()),
        });
        Ok(Self { tokens, oauth, users, challenge })
    }

    /// Verifies the bearer token of a request. A request without the header `Authorization` is authenticated by the
    /// user at the other end of its Unix domain socket connection.
    async fn verify(&self, head: &Parts, peer: Option<&Peer>) -> Result<Principal, AuthError> {
        let mut sent = head.headers.get_all(AUTHORIZATION).iter();
        let Some(authorization) = sent.next() else { return self.principal_for_peer(peer) };
        if sent.next().is_some() {
            return Err(AuthError::DuplicateHeader);
        }
        let sent = authorization.to_str().map_err(|_| AuthError::NotBearer)?;
        let (scheme, token) = sent.split_once(' ').ok_or(AuthError::NotBearer)?;
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        let token = token.trim_matches(' ');
        if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() || !token.bytes().all(is_token) {
            return Err(AuthError::NotBearer);
        }
        match (&self.tokens, &self.oauth) {
            (Some(tokens), _) if token.starts_with(token_format::PREFIX) => tokens.principal(token),
            (_, Some(oauth)) => oauth.principal(token).await,
            _ => Err(AuthError::MalformedToken),
        }
    }

    fn principal_for_peer(&self, peer: Option<&Peer>) -> Result<Principal, AuthError> {
        match (&self.users, peer) {
            (Some(users), Some(Peer::Unix { uid, .. })) => match users.principal(*uid) {
                Some(principal) => Ok(principal),
                None if self.challenge.bearer => Err(AuthError::NoCredentials),
                None => Err(AuthError::UnlistedUser),
            },
            _ => Err(AuthError::NoCredentials),
        }
    }

    fn rejection(&self, error: AuthError) -> Rejection {
        Rejection { error, challenge: self.challenge.clone() }
    }
}

fn start_token_store(file: TokenFile, stop: &CancellationToken) -> Arc<TokenStore> {
    let tokens = Arc::new(TokenStore::new(file));
    let (watched, stop) = (tokens.clone(), stop.clone());
    tokio::spawn(async move { stop.run_until_cancelled(watched.watch()).await });
    tokens
}

/// Returns instructions for a user on how to get access with the configured authentication methods. `tokens` says
/// whether Lockhouse's own tokens are accepted, and `users` whether users of this host are.
fn access_hint(tokens: bool, oauth: Option<&ResourceServer>, users: bool) -> String {
    let methods = [
        tokens.then(|| "`lockhouse token create NAME` on the server's host creates a token".to_owned()),
        oauth.map(|oauth| format!("{} issues tokens", oauth.issuer())),
        users.then(|| "a user of the server's host connects through its Unix domain socket".to_owned()),
    ];
    methods.into_iter().flatten().collect::<Vec<_>>().join("; or: ")
}
