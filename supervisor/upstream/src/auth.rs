//! What a server over HTTP gets as `Authorization`.
//!
//! Tokens are read from their file when they are first needed, renewed before they expire and once more when the server
//! refuses them. Where that does not help, the failure names the command that does.

mod challenge;
pub(super) mod oauth;
pub(super) mod tokens;

use parking_lot::Mutex;
use std::time::{Duration, Instant};

use http::HeaderValue;
use lockhouse_base::secrets::Secrets;
use lockhouse_protocol::ServerName;
use rmcp::transport::auth::AuthError;
use tokio::time::timeout;
use url::Url;

pub(super) use challenge::Challenge;

use super::definition::{Authorization, HttpEndpoint, OAuthClient};
use super::http_fault::{HttpFault, Kind};
use tokens::{Kept, Token, TokenFile, TokenFileError};

/// An authorization server is not asked again before: a token that is refused at once is not what is wrong.
const RENEWAL_EVERY: Duration = Duration::from_secs(5);
/// How long an authorization server may take to give a token.
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the tokens for one server come from.
pub(super) struct Authority {
    name: ServerName,
    url: Url,
    source: Source,
    secrets: Secrets,
    current: Mutex<Option<Token>>,
    /// Held while a token is looked for: the others wait for the same one. When one was last asked for.
    renewing: tokio::sync::Mutex<Option<Instant>>,
}

enum Source {
    /// As configured, in a header or as a token.
    Fixed(Option<HeaderValue>),
    /// What someone got who logged in.
    Login(TokenFile),
    /// What a service gets by itself.
    Service(OAuthClient),
}

impl Authority {
    pub(super) fn new(
        name: &ServerName,
        endpoint: &HttpEndpoint,
        secrets: Secrets,
    ) -> Result<Self, HttpFault> {
        let unusable = |error: &dyn std::error::Error| HttpFault::new(Kind::Unusable, error.to_string(), "");
        let source = match &endpoint.authorization {
            Authorization::OnDemand if endpoint.has_authorization_header() => Source::Fixed(None),
            Authorization::OnDemand | Authorization::OAuth(_) => {
                Source::Login(TokenFile::of(name, &endpoint.url).map_err(|error| unusable(&error))?)
            }
            Authorization::Bearer(token) => Source::Fixed(Some(bearer(token)?)),
            Authorization::ClientCredentials(client) => {
                oauth::credentials(&endpoint.url, client).map_err(|error| unusable(&error))?;
                Source::Service(client.clone())
            }
        };
        Ok(Self {
            name: name.clone(),
            url: endpoint.url.clone(),
            source,
            secrets,
            current: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
        })
    }

    /// What to send now.
    pub(super) async fn token(&self) -> Result<Option<HeaderValue>, HttpFault> {
        if let Source::Fixed(token) = &self.source {
            return Ok(token.clone());
        }
        if let Some(token) = self.current().filter(Token::is_fresh) {
            return bearer(&token.secret).map(Some);
        }
        let mut renewed = self.renewing.lock().await;
        let is_new = is_recent(*renewed);
        let good = |token: &Token| token.is_fresh() || (is_new && token.lasts(Duration::ZERO));
        let token = match &self.source {
            _ if self.current().as_ref().is_some_and(good) => self.current(),
            Source::Fixed(_) => None,
            Source::Service(client) => Some(self.service(client, &mut renewed).await?),
            Source::Login(file) => {
                let kept = file.load().map_err(|error| self.unreadable(&error))?;
                match kept.and_then(|kept| kept.token()) {
                    Some(token) if !good(&token) && is_new => return Err(self.not_renewed("")),
                    Some(token) if !good(&token) => Some(self.refreshed(file, &token, &mut renewed).await?),
                    token => token,
                }
            }
        };
        self.keep(token)
    }

    /// What to send in place of what was refused.
    pub(super) async fn renewed(
        &self,
        refused: Option<HeaderValue>,
        challenge: &Challenge,
    ) -> Result<HeaderValue, HttpFault> {
        let mut renewed = self.renewing.lock().await;
        let is_new = is_recent(*renewed);
        let token = match &self.source {
            _ if self.current().is_some_and(|token| refused != bearer(&token.secret).ok()) => self.current(),
            Source::Fixed(_) => None,
            Source::Service(_) if is_new => None,
            Source::Service(client) => Some(self.service(client, &mut renewed).await?),
            Source::Login(file) => {
                if let Some(scopes) = challenge.lacking(&self.url) {
                    // Where that fails, a person can still name the scopes.
                    let _ = file.want(&scopes).await;
                    return Err(self.refused(challenge));
                }
                let kept = file.load().map_err(|error| self.unreadable(&error))?;
                match kept.as_ref().and_then(Kept::token) {
                    // Someone has logged in since, or another process has renewed it.
                    Some(token) if refused != bearer(&token.secret).ok() => Some(token),
                    Some(token) if !is_new && kept.is_some_and(|kept| kept.is_renewable()) => {
                        Some(self.refreshed(file, &token, &mut renewed).await?)
                    }
                    _ => None,
                }
            }
        };
        self.keep(token)?.ok_or_else(|| self.refused(challenge))
    }

    /// There is nothing else to send.
    pub(super) fn refused(&self, challenge: &Challenge) -> HttpFault {
        let code = challenge.status.as_u16();
        let lacks = challenge.lacking(&self.url).is_some();
        let reason = match &self.source {
            Source::Fixed(_) => {
                format!("it refuses the credentials that are configured for it (HTTP {code})")
            }
            Source::Service(_) => format!("it refuses the tokens of its client credentials (HTTP {code})"),
            Source::Login(_) if lacks => {
                format!("its token does not permit this (HTTP {code}); to ask for more, {}", self.advice())
            }
            Source::Login(_) if self.current().is_some() => {
                format!("its token is not accepted any more (HTTP {code}); {}", self.advice())
            }
            Source::Login(_) => format!("it wants authorization; {}", self.advice()),
        };
        HttpFault::new(Kind::Unauthorized, reason, &self.redact(&challenge.wanted))
    }

    /// The text without tokens.
    pub(super) fn redact(&self, text: &str) -> String {
        let text = self.secrets.redact(text);
        match self.current() {
            Some(token) => text.replace(&token.secret, "[redacted token]"),
            None => text,
        }
    }

    async fn service(
        &self,
        client: &OAuthClient,
        asked_at: &mut Option<Instant>,
    ) -> Result<Token, HttpFault> {
        *asked_at = Some(Instant::now());
        let said = match timeout(RENEWAL_TIMEOUT, oauth::service(&self.url, client)).await {
            Ok(Ok(credentials)) => match Token::of(&credentials) {
                Some(token) => return Ok(token),
                None => String::new(),
            },
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", RENEWAL_TIMEOUT.as_secs()),
        };
        let reason = "the authorization server gives no token for its client credentials";
        Err(HttpFault::new(Kind::Unauthorized, reason, &self.redact(&said)))
    }

    /// Renews a token, unless another process was faster.
    async fn refreshed(
        &self,
        file: &TokenFile,
        stale: &Token,
        asked_at: &mut Option<Instant>,
    ) -> Result<Token, HttpFault> {
        let unreadable = |error: TokenFileError| self.unreadable(&error);
        let _lock = file.lock().await.map_err(unreadable)?;
        let Some(mut kept) = file.load().map_err(unreadable)? else { return Err(self.expired("")) };
        if let Some(token) = kept.token().filter(|token| token != stale && token.is_fresh()) {
            return Ok(token);
        }
        *asked_at = Some(Instant::now());
        match timeout(RENEWAL_TIMEOUT, oauth::refresh(&self.url, &kept)).await {
            Ok(Ok(credentials)) => {
                kept.credentials = Some(credentials);
                file.save(&kept).map_err(unreadable)?;
                kept.token().ok_or_else(|| self.expired(""))
            }
            Ok(Err(error @ (AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)))) => {
                Err(self.expired(&error.to_string()))
            }
            // It is still good for a moment.
            _ if stale.lasts(Duration::ZERO) && stale.expires.is_some() => Ok(stale.clone()),
            failed => {
                let said = match failed {
                    Ok(Err(error)) => self.redact(&error.to_string()),
                    _ => format!("no answer within {} s", RENEWAL_TIMEOUT.as_secs()),
                };
                Err(self.not_renewed(&said))
            }
        }
    }

    fn not_renewed(&self, said: &str) -> HttpFault {
        let reason =
            format!("its token has expired and could not be renewed; try again, or {}", self.advice());
        HttpFault::new(Kind::Unauthorized, reason, said)
    }

    fn expired(&self, said: &str) -> HttpFault {
        let reason = format!("its token has expired; {}", self.advice());
        HttpFault::new(Kind::Unauthorized, reason, said)
    }

    fn unreadable(&self, error: &TokenFileError) -> HttpFault {
        let reason = format!("its token cannot be read or kept; {}", self.advice());
        HttpFault::new(Kind::Unauthorized, reason, &error.to_string())
    }

    fn advice(&self) -> String {
        format!("run `lockhouse server login {}`", self.name)
    }

    fn current(&self) -> Option<Token> {
        self.current.lock().clone()
    }

    fn keep(&self, token: Option<Token>) -> Result<Option<HeaderValue>, HttpFault> {
        let header = token.as_ref().map(|token| bearer(&token.secret)).transpose();
        if token.is_some() {
            *self.current.lock() = token;
        }
        header
    }
}

fn is_recent(asked: Option<Instant>) -> bool {
    asked.is_some_and(|at| at.elapsed() < RENEWAL_EVERY)
}

fn bearer(token: &str) -> Result<HeaderValue, HttpFault> {
    let told = |_| HttpFault::new(Kind::Unusable, "its token has characters that HTTP does not allow", "");
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(told)?;
    value.set_sensitive(true);
    Ok(value)
}
