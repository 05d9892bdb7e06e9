//! Logging in to a server: a person's consent, turned into tokens.

use std::time::SystemTime;

use lockhouse_protocol::ServerName;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig,
};
use serde_json::json;
use url::Url;

use super::auth::Challenge;
use super::auth::oauth::{self, Discovered};
use super::auth::tokens::{Kept, TokenFile, TokenFileError};
use super::definition::{Authorization, HttpEndpoint, OAuthClient};
use super::http;
use super::http_fault::HttpFault;

const CLIENT_NAME: &str = "Lockhouse";

/// Why someone is not logged in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("{0}")]
    Pointless(&'static str),
    #[error("cannot ask the server: {0}")]
    Unreachable(String),
    #[error(
        "the server does not ask for authorization, and names no authorization server; it can be used as it is"
    )]
    NotAsked,
    #[error(
        "the authorization server does not register clients by itself; register one with it, for the redirect address \
         {redirect}, and set oauth.client_id (and oauth.callback_port) for the server"
    )]
    NoRegistration { redirect: String },
    #[error(
        "the address has neither a code nor an error; paste the whole address that the browser was sent to"
    )]
    NotACallback,
    #[error("the authorization server did not grant it: {0}")]
    Denied(String),
    #[error("the authorization failed: {0}")]
    Failed(String),
    #[error(transparent)]
    Tokens(#[from] TokenFileError),
}

/// With all causes, since the outer ones name the step alone.
impl From<AuthError> for LoginError {
    fn from(error: AuthError) -> Self {
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        Self::Failed(words)
    }
}

/// A login that waits for a person.
pub struct Login {
    /// Where the person goes.
    pub address: Url,
    /// What marks the answer as one to this login.
    pub state: String,
    manager: AuthorizationManager,
    store: InMemoryCredentialStore,
    client: OAuthClientConfig,
    file: TokenFile,
    url: Url,
}

/// What a login led to.
#[derive(Debug)]
pub struct Granted {
    pub until: Option<SystemTime>,
    pub renews_itself: bool,
}

impl Login {
    /// Finds the authorization server, becomes known to it and prepares the question. `redirect` is where the browser
    /// comes back to.
    pub async fn begin(
        name: &ServerName,
        endpoint: &HttpEndpoint,
        redirect: &str,
        scopes: &[String],
    ) -> Result<Self, LoginError> {
        let configured = configured(&endpoint.authorization)?;
        let file = TokenFile::of(name, &endpoint.url)?;
        // A damaged file is replaced, not obeyed.
        let before = file.load().ok().flatten();
        let challenge = challenge(endpoint).await?;
        let wanted = challenge.as_ref().map(|challenge| challenge.wanted.as_str());
        let Discovered { mut manager, store, resolution } = oauth::discover(&endpoint.url, wanted).await?;
        if challenge.is_none() && !resolution.source.is_discovered() {
            return Err(LoginError::NotAsked);
        }
        let metadata = &resolution.metadata;
        let chosen = [&configured.scopes[..], scopes].concat();
        let mut scopes = match chosen.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            false => with_offline_access(chosen, metadata),
        };
        scopes.extend(before.iter().flat_map(Kept::scopes));
        let mut seen = std::collections::HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = match own_client(&configured, metadata, redirect) {
            Some(client) => client,
            None if metadata.registration_endpoint.is_none() => {
                return Err(LoginError::NoRegistration { redirect: redirect.to_owned() });
            }
            None => manager.register_client(CLIENT_NAME, redirect, &scopes).await?,
        };
        manager.configure_client(client.clone())?;
        let address = Url::parse(&manager.get_authorization_url(&scopes).await?).map_err(AuthError::from)?;
        let state =
            address.query_pairs().find(|(key, _)| key == "state").map(|(_, value)| value.into_owned());
        let state = state.unwrap_or_default();
        Ok(Self { address, state, manager, store, client, file, url: endpoint.url.clone() })
    }

    /// Takes the address that the browser was sent to, and turns its code into tokens.
    pub async fn finish(&self, callback: &str) -> Result<Granted, LoginError> {
        let url = Url::parse(callback).map_err(|_| LoginError::NotACallback)?;
        let value =
            |name| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
        if let Some(error) = value("error") {
            return Err(LoginError::Denied(error));
        }
        let callback =
            AuthorizationCallback::from_redirect_url(callback).map_err(|_| LoginError::NotACallback)?;
        let (code, state, issuer) = (&callback.code, &callback.csrf_token, callback.issuer.as_deref());
        self.manager.exchange_code_for_token_with_issuer(code, state, issuer).await?;
        let credentials = self.store.load().await?;
        let kept = Kept {
            url: self.url.to_string(),
            client_id: self.client.client_id.clone(),
            client_secret: self.client.client_secret.clone(),
            redirect_uri: self.client.redirect_uri.clone(),
            credentials,
            wanted_scopes: Vec::new(),
        };
        let _lock = self.file.lock().await?;
        self.file.save(&kept)?;
        Ok(Granted {
            until: kept.token().and_then(|token| token.expires),
            renews_itself: kept.is_renewable(),
        })
    }
}

/// Forgets the tokens for a server. Whether there were any.
pub fn log_out(name: &ServerName, endpoint: &HttpEndpoint) -> Result<bool, LoginError> {
    Ok(TokenFile::of(name, &endpoint.url)?.forget()?)
}

fn configured(authorization: &Authorization) -> Result<OAuthClient, LoginError> {
    match authorization {
        Authorization::OnDemand => Ok(OAuthClient::default()),
        Authorization::OAuth(client) => Ok(client.clone()),
        Authorization::Bearer(_) => Err(LoginError::Pointless(
            "the server has a fixed token in the configuration, and no login can change that",
        )),
        Authorization::ClientCredentials(_) => Err(LoginError::Pointless(
            "the server gets its tokens by client credentials, without anyone who logs in",
        )),
    }
}

/// The client that is known to the authorization server already, or that it can read about.
fn own_client(
    configured: &OAuthClient,
    metadata: &AuthorizationMetadata,
    redirect: &str,
) -> Option<OAuthClientConfig> {
    let id = configured.client_id.as_deref()?;
    let reads_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    if id.starts_with("https://") && reads_documents != Some(&json!(true)) {
        return None;
    }
    let client = OAuthClientConfig::new(id, redirect);
    Some(match &configured.client_secret {
        Some(secret) => client.with_client_secret(secret),
        None => client,
    })
}

/// Without this scope some authorization servers grant no refresh token.
fn with_offline_access(mut scopes: Vec<String>, metadata: &AuthorizationMetadata) -> Vec<String> {
    let offline = "offline_access".to_owned();
    if metadata.scopes_supported.as_ref().is_some_and(|supported| supported.contains(&offline)) {
        scopes.push(offline);
    }
    scopes
}

/// What the server says to a request without a token.
async fn challenge(endpoint: &HttpEndpoint) -> Result<Option<Challenge>, LoginError> {
    let unreachable = |fault: HttpFault| {
        let said = if fault.said.is_empty() { String::new() } else { format!(" ({})", fault.said) };
        LoginError::Unreachable(fault.reason + &said)
    };
    let response = http::probe(endpoint).await.map_err(unreachable)?;
    Ok(Challenge::of(&response))
}
