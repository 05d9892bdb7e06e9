//! Logs in to an upstream server over HTTP with OAuth: obtains the user's consent and exchanges it for tokens.

mod callback;

use std::time::{Duration, SystemTime};

use lockhouse_base::url_protection::is_protected;
use lockhouse_messages::Logout;
use lockhouse_protocol::ServerName;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig,
};
use serde_json::json;
use url::Url;

use super::auth::Challenge;
use super::auth::oauth::{self, OAuthDiscovery};
use super::auth::secret_file::SecretFileError;
use super::auth::token_file::{StoredLogin, TokenFile};
use super::definition::{Authorization, HttpEndpoint, OAuthClient};
use super::http;
use lockhouse_mcp::client::HttpError;

pub use callback::Callback;

const CLIENT_NAME: &str = "Lockhouse";

/// How long the user may take to log in to the upstream server in the browser.
/// Bound: upstream servers.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);
/// The time limit for the requests to the upstream server and its authorization server. The limit applies separately
/// to the requests before the user's login in the browser, and to those after the login.
/// Bound: upstream servers.
pub const LOGIN_REQUESTS_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit for the revocation of tokens.
/// Bound: upstream servers.
const REVOCATION_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum length of an address that an error quotes, in characters.
const ADDRESS_CHARS_MAX: usize = 200;

/// Why a login to an upstream server, or a logout, failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("{0}")]
    Pointless(&'static str),
    #[error("cannot reach the server: {0}")]
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
    #[error(
        "the {endpoint} that the authorization server names is not used: {address} must begin with https://, or with http:// \
         and a loopback address"
    )]
    UnsafeEndpoint { endpoint: &'static str, address: String },
    #[error("the authorization server did not grant it: {0}")]
    Denied(String),
    #[error("the authorization failed: {0}")]
    Failed(String),
    #[error(transparent)]
    Tokens(#[from] SecretFileError),
}

/// Converts an OAuth error with all of its causes, since the outermost error names only the step that failed.
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

/// An OAuth login to an upstream server that waits for the user's consent.
pub struct Login {
    /// The address that the user must open in a browser to give consent.
    pub address: Url,
    /// The OAuth `state` parameter, by which the redirect of the browser is recognized as the answer to this login.
    pub state: String,
    manager: AuthorizationManager,
    store: InMemoryCredentialStore,
    client: OAuthClientConfig,
    file: TokenFile,
    url: Url,
}

/// Checks an address that the authorization server names, before the user's browser opens it or a secret is sent to it.
/// The server chooses the address, so it could begin with `javascript:` or `file:`.
fn check_endpoint(endpoint: &'static str, address: &str) -> Result<(), LoginError> {
    let is_safe = Url::parse(address).is_ok_and(|url| is_protected(&url));
    let address = || lockhouse_policies::quoted(address, ADDRESS_CHARS_MAX);
    is_safe.then_some(()).ok_or_else(|| LoginError::UnsafeEndpoint { endpoint, address: address() })
}

/// When the token that a login obtained expires, and whether it can be renewed without another login.
#[derive(Debug)]
pub struct LoginGrant {
    pub expires: Option<SystemTime>,
    pub is_renewable: bool,
}

impl Login {
    /// Begins a login: discovers the authorization server, registers Lockhouse as an OAuth client if necessary, and
    /// creates the address that the user must open. `redirect` is the address to which the browser returns after the
    /// consent; `scopes` are requested in addition to the configured scopes.
    pub async fn begin(
        name: &ServerName,
        endpoint: &HttpEndpoint,
        redirect: &str,
        scopes: &[String],
    ) -> Result<Self, LoginError> {
        Self::begin_with(TokenFile::new(name, &endpoint.url)?, endpoint, redirect, scopes).await
    }

    /// Begins a login whose tokens are stored in `file`.
    pub(super) async fn begin_with(
        file: TokenFile,
        endpoint: &HttpEndpoint,
        redirect: &str,
        scopes: &[String],
    ) -> Result<Self, LoginError> {
        let configured_client = configured_client(&endpoint.authorization)?;
        // A damaged file is ignored and replaced.
        let before = file.load().ok().flatten();
        let request_challenge = request_challenge(endpoint).await?;
        let wanted =
            request_challenge.as_ref().map(|request_challenge| request_challenge.www_authenticate.as_str());
        let OAuthDiscovery { mut manager, store, resolution } = oauth::discover(endpoint, wanted).await?;
        if request_challenge.is_none() && !resolution.source.is_discovered() {
            return Err(LoginError::NotAsked);
        }
        let metadata = &resolution.metadata;
        check_endpoint("authorization endpoint", &metadata.authorization_endpoint)?;
        check_endpoint("token endpoint", &metadata.token_endpoint)?;
        let chosen = [&configured_client.scopes[..], scopes].concat();
        let mut scopes = match chosen.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            false => with_offline_access(chosen, metadata),
        };
        scopes.extend(before.iter().flat_map(StoredLogin::scopes));
        let mut seen = std::collections::HashSet::new();
        scopes.retain(|scope| seen.insert(scope.clone()));
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = match own_client(&configured_client, metadata, redirect) {
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

    /// Completes the login: exchanges the code in `callback`, the address to which the browser was redirected, for
    /// tokens, and stores the tokens.
    pub async fn finish(&self, callback: &str) -> Result<LoginGrant, LoginError> {
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
        let stored = StoredLogin {
            url: self.url.to_string(),
            client_id: self.client.client_id.clone(),
            client_secret: self.client.client_secret.clone(),
            redirect_uri: self.client.redirect_uri.clone(),
            credentials,
            wanted_scopes: Vec::new(),
        };
        let _lock = self.file.lock().await?;
        self.file.save(&stored)?;
        Ok(LoginGrant {
            expires: stored.token().and_then(|token| token.expires),
            is_renewable: stored.is_renewable(),
        })
    }
}

/// Deletes the stored OAuth tokens of the service for an upstream server, and revokes them at the authorization server if that
/// can.
pub async fn log_out(name: &ServerName, endpoint: &HttpEndpoint) -> Result<Logout, LoginError> {
    log_out_of(&TokenFile::new(name, &endpoint.url)?, endpoint).await
}

/// Deletes the tokens in `file`, and revokes them. A server that cannot be reached does not keep them.
pub(super) async fn log_out_of(file: &TokenFile, endpoint: &HttpEndpoint) -> Result<Logout, LoginError> {
    let stored = file.load().ok().flatten();
    if !file.delete()? {
        return Ok(Logout::Nothing);
    }
    let Some(stored) = stored else { return Ok(Logout::Complete) };
    Ok(match tokio::time::timeout(REVOCATION_TIMEOUT, oauth::revoke(endpoint, &stored)).await {
        Ok(Ok(())) => Logout::Complete,
        Ok(Err(error)) => Logout::NotRevoked(error.to_string()),
        Err(_) => Logout::NotRevoked("the authorization server did not answer in time".to_owned()),
    })
}

fn configured_client(authorization: &Authorization) -> Result<OAuthClient, LoginError> {
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

/// Returns the configured OAuth client, with the redirect address `redirect`. `None` if no client is configured, or if
/// its ID is the URL of a metadata document and the authorization server does not support such documents.
fn own_client(
    configured_client: &OAuthClient,
    metadata: &AuthorizationMetadata,
    redirect: &str,
) -> Option<OAuthClientConfig> {
    let id = configured_client.client_id.as_deref()?;
    let reads_documents = metadata.additional_fields.get("client_id_metadata_document_supported");
    if id.starts_with("https://") && reads_documents != Some(&json!(true)) {
        return None;
    }
    let client = OAuthClientConfig::new(id, redirect);
    Some(match &configured_client.client_secret {
        Some(secret) => client.with_client_secret(secret),
        None => client,
    })
}

/// Adds the scope `offline_access` if the authorization server supports it. Without it, some authorization servers
/// issue no refresh token.
fn with_offline_access(mut scopes: Vec<String>, metadata: &AuthorizationMetadata) -> Vec<String> {
    let offline = "offline_access".to_owned();
    if metadata.scopes_supported.as_ref().is_some_and(|supported| supported.contains(&offline)) {
        scopes.push(offline);
    }
    scopes
}

/// Sends a request without a token to the upstream server and returns its authorization challenge; `None` if the server
/// responds without a challenge.
async fn request_challenge(endpoint: &HttpEndpoint) -> Result<Option<Challenge>, LoginError> {
    let unreachable = |fault: HttpError| {
        let server_text =
            if fault.server_text.is_empty() { String::new() } else { format!(" ({})", fault.server_text) };
        LoginError::Unreachable(fault.reason + &server_text)
    };
    let response = http::probe(endpoint).await.map_err(unreachable)?;
    Ok(Challenge::from_response(&response))
}
