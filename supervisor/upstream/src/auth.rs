//! Provides the `Authorization` header of HTTP requests to upstream servers.
//!
//! The access token of a user's login is read from its file when it is first needed, and renewed before it expires
//! (`auth/token_refresh.rs`). If the server refuses the token, the token is renewed once. If the renewal fails, the
//! error names the command with which the user logs in again.

mod challenge;
pub(super) mod exchange;
pub(super) mod oauth;
pub(super) mod secret_file;
mod subject_tokens;
pub(super) mod token_file;
mod token_refresh;

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use http::HeaderValue;
use lockhouse_base::secrets::Secrets;
use lockhouse_cluster::Sharing;
use lockhouse_protocol::ServerName;

pub(super) use challenge::Challenge;
pub use exchange::ExchangeSettings;
pub use subject_tokens::SubjectTokens;

use super::definition::{Authorization, HttpEndpoint, OAuthClient};
use exchange::UserExchange;
use lockhouse_mcp::client::{HttpError, HttpErrorKind};
use secret_file::{SecretFile, SecretFileError};
use token_file::{AccessToken, StoredLogin, TokenFile};
use token_refresh::is_recent;

/// Provides the access tokens for the requests to one upstream server over HTTP.
pub(super) struct TokenProvider {
    endpoint: HttpEndpoint,
    source: CredentialSource,
    secrets: Secrets,
    current: Mutex<Option<AccessToken>>,
    /// Locked while a token is renewed, so that concurrent requests wait for the same new token. Contains the time at
    /// which the authorization server was last asked for a token; `None` before the first time.
    renewing: tokio::sync::Mutex<Option<Instant>>,
    /// How to log in again.
    advice: String,
    sharing: Sharing,
}

/// Whose login a connection uses.
#[derive(Clone, Debug, Default)]
pub(super) struct LoginSource {
    /// The tokens of a user. `None` for a connection with the login of the service.
    pub(super) user_file: Option<SecretFile>,
    /// What the tokens of a user come from, who has no login of this server.
    pub(super) exchange: Option<UserExchange>,
    /// How to log in again.
    pub(super) advice: String,
    /// What all hosts of a cluster share.
    pub(super) sharing: Sharing,
}

impl LoginSource {
    /// Returns the login of the service. With `is_per_user`, it is for the list of tools alone.
    pub(super) fn of_service(name: &ServerName, is_per_user: bool, sharing: Sharing) -> Self {
        let flag = if is_per_user { " --service" } else { "" };
        let advice = format!("run `lockhouse server login {name}{flag}`");
        Self { user_file: None, exchange: None, advice, sharing }
    }
}

enum CredentialSource {
    /// A fixed `Authorization` header with the configured token; `None` if the configured headers already contain
    /// `Authorization`.
    Fixed(Option<HeaderValue>),
    /// The file with the OAuth tokens that a user obtained with `lockhouse server login`.
    Login(TokenFile),
    /// The OAuth client for which Lockhouse itself obtains access tokens by the client credentials grant.
    Service(OAuthClient),
    /// The token with which a user authenticates to the service.
    Exchange(UserExchange),
}

impl TokenProvider {
    pub(super) fn new(
        name: &ServerName,
        endpoint: &HttpEndpoint,
        secrets: Secrets,
        login: &LoginSource,
    ) -> Result<Self, HttpError> {
        let unusable =
            |error: &dyn std::error::Error| HttpError::new(HttpErrorKind::Unusable, error.to_string(), "");
        let source = match &endpoint.authorization {
            _ if let Some(exchange) = &login.exchange => CredentialSource::Exchange(exchange.clone()),
            _ if let Some(file) = &login.user_file => {
                CredentialSource::Login(TokenFile::of_user(file.clone()))
            }
            Authorization::OnDemand if endpoint.has_authorization_header() => CredentialSource::Fixed(None),
            Authorization::OnDemand | Authorization::OAuth(_) => CredentialSource::Login(
                TokenFile::new(name, &endpoint.url).map_err(|error| unusable(&error))?,
            ),
            Authorization::Bearer(token) => CredentialSource::Fixed(Some(bearer(token)?)),
            Authorization::ClientCredentials(client) => {
                oauth::client_credentials_config(&endpoint.url, client).map_err(|error| unusable(&error))?;
                CredentialSource::Service(client.clone())
            }
        };
        Ok(Self {
            endpoint: endpoint.clone(),
            source,
            secrets,
            current: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            advice: login.advice.clone(),
            sharing: login.sharing.clone(),
        })
    }

    /// Returns the value of the `Authorization` header for the next request; `None` if the request is sent without this
    /// header. First renews a token that has expired or expires soon.
    pub(super) async fn token(&self) -> Result<Option<HeaderValue>, HttpError> {
        if let CredentialSource::Fixed(token) = &self.source {
            return Ok(token.clone());
        }
        if let Some(token) = self.current().filter(AccessToken::is_fresh) {
            return bearer(&token.secret).map(Some);
        }
        let mut renewed = self.renewing.lock().await;
        let is_new = is_recent(*renewed);
        let good = |token: &AccessToken| token.is_fresh() || (is_new && token.is_valid_for(Duration::ZERO));
        let token = match &self.source {
            _ if self.current().as_ref().is_some_and(good) => self.current(),
            CredentialSource::Fixed(_) => None,
            CredentialSource::Service(client) => Some(self.service(client, &mut renewed).await?),
            CredentialSource::Exchange(user) => Some(self.exchanged(user, &mut renewed).await?),
            CredentialSource::Login(file) => {
                let stored = file.load().map_err(|error| self.unreadable(&error))?;
                match stored.and_then(|stored| stored.token()) {
                    Some(token) if !good(&token) && is_new => return Err(self.not_renewed("")),
                    Some(token) if !good(&token) => Some(self.refreshed(file, &token, &mut renewed).await?),
                    token => token,
                }
            }
        };
        self.keep(token)
    }

    /// Returns a new value for the `Authorization` header after the server has refused the value `refused`. Returns an
    /// error if Lockhouse has no other token and cannot renew this one.
    pub(super) async fn renewed(
        &self,
        refused: Option<HeaderValue>,
        challenge: &Challenge,
    ) -> Result<HeaderValue, HttpError> {
        let mut renewed = self.renewing.lock().await;
        let is_new = is_recent(*renewed);
        let token = match &self.source {
            _ if self.current().is_some_and(|token| refused != bearer(&token.secret).ok()) => self.current(),
            CredentialSource::Fixed(_) => None,
            CredentialSource::Service(_) | CredentialSource::Exchange(_) if is_new => None,
            CredentialSource::Service(client) => Some(self.service(client, &mut renewed).await?),
            CredentialSource::Exchange(user) => Some(self.exchanged(user, &mut renewed).await?),
            CredentialSource::Login(file) => {
                if let Some(scopes) = challenge.missing_scope(&self.endpoint.url) {
                    // If that fails, the user can still name the scopes when logging in.
                    let _ = file.remember_wanted_scopes(&scopes).await;
                    return Err(self.refused(challenge));
                }
                let stored = file.load().map_err(|error| self.unreadable(&error))?;
                match stored.as_ref().and_then(StoredLogin::token) {
                    // A user has logged in meanwhile, or another process has renewed the token.
                    Some(token) if refused != bearer(&token.secret).ok() => Some(token),
                    Some(token) if !is_new && stored.is_some_and(|stored| stored.is_renewable()) => {
                        Some(self.refreshed(file, &token, &mut renewed).await?)
                    }
                    _ => None,
                }
            }
        };
        self.keep(token)?.ok_or_else(|| self.refused(challenge))
    }

    /// Returns the error for a request that the server refused with `challenge`, for which Lockhouse has no other
    /// token.
    pub(super) fn refused(&self, challenge: &Challenge) -> HttpError {
        let code = challenge.status.as_u16();
        let lacks = challenge.missing_scope(&self.endpoint.url).is_some();
        let reason = match &self.source {
            CredentialSource::Fixed(_) => {
                format!("it refuses the credentials that are configured for it (HTTP {code})")
            }
            CredentialSource::Service(_) => {
                format!("it refuses the tokens of its client credentials (HTTP {code})")
            }
            CredentialSource::Exchange(_) => {
                format!("it refuses the token that was exchanged for this user (HTTP {code})")
            }
            CredentialSource::Login(_) if lacks => {
                format!("its token does not permit this (HTTP {code}); to ask for more, {}", self.advice())
            }
            CredentialSource::Login(_) if self.current().is_some() => {
                format!("its token is not accepted any more (HTTP {code}); {}", self.advice())
            }
            CredentialSource::Login(_) => format!("it requires authorization; {}", self.advice()),
        };
        HttpError::new(HttpErrorKind::Unauthorized, reason, &self.redact(&challenge.www_authenticate))
    }

    /// Returns `text`, such as an error message of the server, with the configured secrets and the current access token
    /// redacted.
    pub(super) fn redact(&self, text: &str) -> String {
        let text = self.secrets.redact(text);
        match self.current() {
            Some(token) => {
                Secrets::from_environment(&[("token".to_owned(), token.secret)].into()).redact(&text)
            }
            None => text,
        }
    }

    fn unreadable(&self, error: &SecretFileError) -> HttpError {
        let reason = format!("its token cannot be read or kept; {}", self.advice());
        HttpError::new(HttpErrorKind::Unauthorized, reason, &error.to_string())
    }

    fn advice(&self) -> &str {
        &self.advice
    }

    fn current(&self) -> Option<AccessToken> {
        self.current.lock().clone()
    }

    fn keep(&self, token: Option<AccessToken>) -> Result<Option<HeaderValue>, HttpError> {
        let header = token.as_ref().map(|token| bearer(&token.secret)).transpose();
        if token.is_some() {
            *self.current.lock() = token;
        }
        header
    }
}

fn bearer(token: &str) -> Result<HeaderValue, HttpError> {
    let invalid =
        |_| HttpError::new(HttpErrorKind::Unusable, "its token has characters that HTTP does not allow", "");
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(invalid)?;
    value.set_sensitive(true);
    Ok(value)
}
