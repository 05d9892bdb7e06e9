//! Obtains new access tokens for an upstream server: with the refresh token of a user's login, or with the client
//! credentials of Lockhouse itself.

use std::time::{Duration, Instant};

use lockhouse_base::own_host;
use rmcp::transport::auth::AuthError;
use tokio::time::timeout;

use super::exchange::{self, ExchangeError, UserExchange};
use super::secret_file::SecretFileError;
use super::token_file::{AccessToken, TokenFile};
use super::{TokenProvider, oauth};
use crate::definition::OAuthClient;
use crate::shared_files::shared_item;
use lockhouse_mcp::client::{HttpError, HttpErrorKind};

/// Minimum time between two requests to the authorization server for a token. A new token that the upstream server
/// refuses within this time is not renewed again.
const RENEWAL_EVERY: Duration = Duration::from_secs(5);
/// Timeout of a request to the authorization server for a token.
/// Bound: upstream servers.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(30);

impl TokenProvider {
    pub(super) async fn service(
        &self,
        client: &OAuthClient,
        asked_at: &mut Option<Instant>,
    ) -> Result<AccessToken, HttpError> {
        *asked_at = Some(Instant::now());
        let server_text =
            match timeout(RENEWAL_TIMEOUT, oauth::client_credentials_token(&self.endpoint, client)).await {
                Ok(Ok(credentials)) => match AccessToken::from_credentials(&credentials) {
                    Some(token) => return Ok(token),
                    None => String::new(),
                },
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} s", RENEWAL_TIMEOUT.as_secs()),
            };
        let reason = "the authorization server gives no token for its client credentials";
        Err(HttpError::new(HttpErrorKind::Unauthorized, reason, &self.redact(&server_text)))
    }

    /// Obtains a token for a user from the token with which that user authenticates to the service.
    pub(super) async fn exchanged(
        &self,
        user: &UserExchange,
        asked_at: &mut Option<Instant>,
    ) -> Result<AccessToken, HttpError> {
        *asked_at = Some(Instant::now());
        let fault = match timeout(RENEWAL_TIMEOUT, exchange::token_of_user(&self.endpoint, user)).await {
            Ok(Ok(token)) => return Ok(token),
            Ok(Err(ExchangeError::NoSubject)) => return Err(self.expired("")),
            Ok(Err(error)) => self.redact(&error.to_string()),
            Err(_) => format!("no answer within {} s", RENEWAL_TIMEOUT.as_secs()),
        };
        let reason = "the identity provider gives no token for this user";
        Err(HttpError::new(HttpErrorKind::Unauthorized, reason, &fault))
    }

    /// Renews the access token `stale` with the stored refresh token, and returns the new token. If another process or host has
    /// already renewed the token, returns its token. A refresh token may be of use only once, so no two of them use it. If the authorization server cannot renew the token at
    /// present and `stale` has not expired yet, returns `stale`. Sets `asked_at` when the authorization server is
    /// asked.
    pub(super) async fn refreshed(
        &self,
        file: &TokenFile,
        stale: &AccessToken,
        asked_at: &mut Option<Instant>,
    ) -> Result<AccessToken, HttpError> {
        let unreadable = |error: SecretFileError| self.unreadable(&error);
        let _lock = file.lock().await.map_err(unreadable)?;
        let of_cluster = match shared_item(&self.sharing, file.path()) {
            Some(item) => item.lock().await,
            None => Ok(None),
        };
        let of_cluster = of_cluster.map_err(|error| self.not_renewed(&error.to_string()))?;
        let Some(mut stored) = file.load().map_err(unreadable)? else { return Err(self.expired("")) };
        if let Some(token) = stored.token().filter(|token| token != stale && token.is_fresh()) {
            return Ok(token);
        }
        if !own_host::may_act() {
            return Err(self.not_renewed("this host has lost its place in the cluster"));
        }
        *asked_at = Some(Instant::now());
        match timeout(RENEWAL_TIMEOUT, oauth::refresh(&self.endpoint, &stored)).await {
            Ok(Ok(credentials)) => {
                stored.credentials = Some(credentials);
                file.save(&stored).map_err(unreadable)?;
                if let Some(lock) = of_cluster
                    && let Err(error) = lock.finish().await
                {
                    tracing::warn!("the other hosts do not know a renewed token yet: {error}");
                }
                stored.token().ok_or_else(|| self.expired(""))
            }
            Ok(Err(error @ (AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)))) => {
                Err(self.expired(&error.to_string()))
            }
            // The token is still valid for a moment.
            _ if stale.is_valid_for(Duration::ZERO) && stale.expires.is_some() => Ok(stale.clone()),
            failed => {
                let server_text = match failed {
                    Ok(Err(error)) => self.redact(&error.to_string()),
                    _ => format!("no answer within {} s", RENEWAL_TIMEOUT.as_secs()),
                };
                Err(self.not_renewed(&server_text))
            }
        }
    }

    pub(super) fn not_renewed(&self, server_text: &str) -> HttpError {
        let reason =
            format!("its token has expired and could not be renewed; try again, or {}", self.advice());
        HttpError::new(HttpErrorKind::Unauthorized, reason, server_text)
    }

    fn expired(&self, server_text: &str) -> HttpError {
        let reason = format!("its token has expired; {}", self.advice());
        HttpError::new(HttpErrorKind::Unauthorized, reason, server_text)
    }
}

/// Whether the authorization server was asked for a token less than [`RENEWAL_EVERY`] ago, so that it must not be asked
/// again yet. `asked` is the time of the last request; `None` if there was none.
pub(super) fn is_recent(asked: Option<Instant>) -> bool {
    asked.is_some_and(|at| at.elapsed() < RENEWAL_EVERY)
}
