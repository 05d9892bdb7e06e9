//! Exchanges the token of a user for a token of that user for an upstream server: token exchange (RFC 8693), and MCP's
//! enterprise-managed authorization, in which the identity provider issues an assertion (ID-JAG) that the authorization server of
//! the upstream server takes (RFC 7523).

use std::time::{Duration, SystemTime};

use lockhouse_base::url_protection::is_protected;
use lockhouse_messages::Owner;
use rmcp::transport::auth::AuthError;
use serde::Deserialize;
use url::Url;

use super::oauth::{OAuthDiscovery, client_request, discover, http_client, wait_apart};
use super::subject_tokens::SubjectTokens;
use super::token_file::AccessToken;
use crate::definition::{Authorization, ExchangeKind, HttpEndpoint, OAuthClient, TokenExchange};

/// Maximum size of a response with a token, in bytes.
/// Bound: upstream servers.
const RESPONSE_BYTES_MAX: usize = 256 * 1024;
/// Time for which a token is used that has no time of its own.
const LIFETIME_DEFAULT: Duration = Duration::from_secs(300);

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The identity provider at which tokens are exchanged.
#[derive(Clone)]
pub struct ExchangeSettings {
    /// The token endpoint.
    pub url: Url,
    pub client_id: String,
    /// `None` for a client that does not authenticate.
    pub client_secret: Option<String>,
    /// What the tokens of users are, as RFC 8693 names it.
    pub subject_type: String,
}

/// Prints no secret.
impl std::fmt::Debug for ExchangeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExchangeSettings").field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// What one user's tokens for one server come from.
#[derive(Clone, Debug)]
pub(crate) struct UserExchange {
    pub(crate) settings: ExchangeSettings,
    pub(crate) exchange: TokenExchange,
    pub(crate) subjects: SubjectTokens,
    pub(crate) user: Owner,
}

/// Why there is no token for a user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("the user has no valid token here")]
    NoSubject,
    /// The text is the answer's error code.
    #[error("the exchange was refused: {0}")]
    Refused(String),
    #[error("the answer is not that of a token endpoint: {0}")]
    Answer(&'static str),
    #[error("the authorization server cannot be reached")]
    Unreachable,
    #[error(transparent)]
    Discovery(#[from] AuthError),
}

/// A token response (RFC 6749, RFC 8693).
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    #[serde(default)]
    token_type: String,
    issued_token_type: Option<String>,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

/// Obtains a token of a user for the upstream server at `endpoint`.
///
/// # Errors
/// [`ExchangeError`]: no token of another user, and none for another server, is used instead.
pub(crate) async fn token_of_user(
    endpoint: &HttpEndpoint,
    user: &UserExchange,
) -> Result<AccessToken, ExchangeError> {
    let subject = user.subjects.get(user.user).ok_or(ExchangeError::NoSubject)?;
    let http = http_client(endpoint)?;
    let answer = match user.exchange.kind {
        ExchangeKind::Token => {
            let answer = exchanged(&http, endpoint, user, &subject, ACCESS_TOKEN, None).await?;
            if answer.issued_token_type.as_deref().is_some_and(|kind| kind != ACCESS_TOKEN) {
                return Err(ExchangeError::Answer("it has no access token"));
            }
            answer
        }
        ExchangeKind::Assertion => asserted(&http, endpoint, user, &subject).await?,
    };
    if !answer.token_type.eq_ignore_ascii_case("bearer") {
        return Err(ExchangeError::Answer("the token is no bearer token"));
    }
    let lifetime = answer.expires_in.map_or(LIFETIME_DEFAULT, Duration::from_secs);
    let expires = SystemTime::now().checked_add(lifetime);
    Ok(AccessToken { secret: answer.access_token, expires })
}

/// Obtains an assertion, and with it a token of the authorization server of the upstream server.
async fn asserted(
    http: &reqwest::Client,
    endpoint: &HttpEndpoint,
    user: &UserExchange,
    subject: &str,
) -> Result<TokenAnswer, ExchangeError> {
    let (issuer, address) = authorization_server(endpoint).await?;
    let assertion = exchanged(http, endpoint, user, subject, ID_JAG, Some(&issuer)).await?;
    if assertion.issued_token_type.as_deref() != Some(ID_JAG) {
        return Err(ExchangeError::Answer("it has no assertion for an authorization server"));
    }
    let client = match &endpoint.authorization {
        Authorization::OAuth(client) => client.clone(),
        _ => OAuthClient::default(),
    };
    let scope = client.scopes.join(" ");
    let mut fields = vec![("grant_type", JWT_BEARER), ("assertion", assertion.access_token.as_str())];
    if !scope.is_empty() {
        fields.push(("scope", &scope));
    }
    let client_id = client.client_id.as_deref().unwrap_or(&user.settings.client_id);
    post(http, &address, fields, client_id, client.client_secret.as_deref()).await
}

/// Returns the issuer and the token endpoint of the authorization server of an upstream server.
async fn authorization_server(endpoint: &HttpEndpoint) -> Result<(String, Url), ExchangeError> {
    let endpoint = endpoint.clone();
    let found = wait_apart(move || async move { discover(&endpoint, None).await }).await;
    let OAuthDiscovery { resolution, .. } = found?;
    let address = Url::parse(&resolution.metadata.token_endpoint).ok().filter(is_protected);
    let address = address.ok_or(ExchangeError::Answer("its token endpoint is not protected"))?;
    let issuer = resolution.metadata.issuer.ok_or(ExchangeError::Answer("it names no issuer"))?;
    Ok((issuer, address))
}

/// Exchanges a token at the identity provider. `issuer` is the authorization server that takes an assertion.
async fn exchanged(
    http: &reqwest::Client,
    endpoint: &HttpEndpoint,
    user: &UserExchange,
    subject: &str,
    requested: &str,
    issuer: Option<&str>,
) -> Result<TokenAnswer, ExchangeError> {
    let ExchangeSettings { url, client_id, client_secret, subject_type } = &user.settings;
    let scope = match &endpoint.authorization {
        Authorization::OAuth(client) => client.scopes.join(" "),
        _ => String::new(),
    };
    let mut fields = vec![
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", requested),
        ("subject_token", subject),
        ("subject_token_type", subject_type),
        ("resource", endpoint.url.as_str()),
    ];
    fields.extend(issuer.or(user.exchange.audience.as_deref()).map(|audience| ("audience", audience)));
    if !scope.is_empty() {
        fields.push(("scope", &scope));
    }
    post(http, url, fields, client_id, client_secret.as_deref()).await
}

async fn post(
    http: &reqwest::Client,
    address: &Url,
    fields: Vec<(&str, &str)>,
    client_id: &str,
    client_secret: Option<&str>,
) -> Result<TokenAnswer, ExchangeError> {
    let request = client_request(http, address, fields, client_id, client_secret);
    let mut response = request.send().await.map_err(|_| ExchangeError::Unreachable)?;
    let is_success = response.status().is_success();
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|_| ExchangeError::Unreachable)? {
        if body.len() + part.len() > RESPONSE_BYTES_MAX {
            return Err(ExchangeError::Answer("it is too long"));
        }
        body.extend_from_slice(&part);
    }
    match is_success {
        true => serde_json::from_slice(&body).map_err(|_| ExchangeError::Answer("it is no token response")),
        false => {
            let error = serde_json::from_slice::<ErrorAnswer>(&body).map(|answer| answer.error);
            Err(ExchangeError::Refused(error.unwrap_or_else(|_| response.status().as_u16().to_string())))
        }
    }
}
