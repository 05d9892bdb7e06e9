//! OAuth 2.1 requests to the authorization servers of upstream servers, by means of the library rmcp.
//! [`token_file`](super::token_file) stores the tokens.
//!
//! The metadata of an upstream server names its authorization server. If the authorization server's address is in a
//! private network, rmcp accepts it only if the configured address of the upstream server is in a private network, too.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use lockhouse_base::url_protection::is_protected;
use reqwest::redirect::Policy;
use rmcp::transport::JwtSigningAlgorithm;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadataResolution, ClientCredentialsConfig,
    CredentialStore, InMemoryCredentialStore, StoredCredentials,
};
use url::Url;

use super::token_file::StoredLogin;
use crate::definition::{HttpEndpoint, OAuthClient, Proxy};
use crate::http_proxy::with_proxy;

/// The result of discovering an authorization server: rmcp's authorization manager with the metadata of that server,
/// and the store in which the manager puts credentials.
pub(crate) struct OAuthDiscovery {
    pub(crate) manager: AuthorizationManager,
    pub(crate) store: InMemoryCredentialStore,
    pub(crate) resolution: AuthorizationMetadataResolution,
}

/// Time limit of a request to an authorization server that does not go over a proxy of the environment.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Discovers the authorization server of an upstream server. `challenge` is the value of the
/// `WWW-Authenticate` header in the upstream server's response, if there is one.
pub(crate) async fn discover(
    endpoint: &HttpEndpoint,
    challenge: Option<&str>,
) -> Result<OAuthDiscovery, AuthError> {
    let mut manager = AuthorizationManager::new(endpoint.url.clone()).await?;
    if endpoint.proxy != Proxy::Environment {
        // rmcp's own client obeys the environment, whose proxy could read what is not encrypted.
        manager.with_client(http_client(endpoint)?)?;
    }
    let store = InMemoryCredentialStore::new();
    manager.set_credential_store(store.clone());
    let resolution = manager.resolve_metadata_from_challenge(challenge).await?;
    manager.set_metadata(resolution.metadata.clone());
    Ok(OAuthDiscovery { manager, store, resolution })
}

/// Creates a client for requests to the authorization server of an upstream server, over its proxy.
pub(super) fn http_client(endpoint: &HttpEndpoint) -> Result<reqwest::Client, AuthError> {
    let client = reqwest::Client::builder().timeout(REQUEST_TIMEOUT).redirect(Policy::none());
    let client = with_proxy(client, endpoint).and_then(reqwest::ClientBuilder::build);
    client.map_err(|error| AuthError::InternalError(error.to_string()))
}

/// Renews the stored access token for an upstream server with its refresh token, and returns the new tokens.
pub(crate) async fn refresh(
    endpoint: &HttpEndpoint,
    stored: &StoredLogin,
) -> Result<StoredCredentials, AuthError> {
    let credentials = stored.credentials.clone().ok_or(AuthError::AuthorizationRequired)?;
    let OAuthDiscovery { mut manager, store, .. } = discover(endpoint, None).await?;
    store.save(credentials).await?;
    // False if the server now uses another authorization server.
    if !manager.initialize_from_store().await? {
        return Err(AuthError::AuthorizationRequired);
    }
    // The store contains the client's ID without its secret.
    manager.configure_client(stored.client())?;
    manager.refresh_token().await?;
    store.load().await?.ok_or(AuthError::AuthorizationRequired)
}

/// Why tokens are not revoked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RevocationError {
    #[error("the authorization server has no endpoint for that; revoke them there")]
    NoEndpoint,
    #[error("the authorization server answered with HTTP {0}")]
    Refused(u16),
    #[error(transparent)]
    Discovery(#[from] AuthError),
    #[error("the authorization server cannot be reached")]
    Unreachable,
}

/// Returns a request to an endpoint of an authorization server, which authenticates the client with its secret; a client without
/// a secret names itself (RFC 6749, section 2.3.1).
pub(super) fn client_request<'a>(
    http: &reqwest::Client,
    address: &Url,
    mut fields: Vec<(&'a str, &'a str)>,
    client_id: &'a str,
    client_secret: Option<&str>,
) -> reqwest::RequestBuilder {
    let mut request = http.post(address.clone());
    match client_secret {
        Some(secret) => request = request.basic_auth(client_id, Some(secret)),
        None => fields.push(("client_id", client_id)),
    }
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form)
}

/// Revokes the tokens of a login at the authorization server (RFC 7009): the refresh token, with which the access token ends,
/// and the access token.
pub(crate) async fn revoke(endpoint: &HttpEndpoint, stored: &StoredLogin) -> Result<(), RevocationError> {
    let OAuthDiscovery { resolution, .. } = discover(endpoint, None).await?;
    let address = resolution.metadata.additional_fields.get("revocation_endpoint");
    let address = address.and_then(|address| Url::parse(address.as_str()?).ok());
    let address = address.filter(is_protected).ok_or(RevocationError::NoEndpoint)?;
    let client = http_client(endpoint)?;
    for (kind, token) in stored.revocable_tokens() {
        let fields = vec![("token", token.as_str()), ("token_type_hint", kind)];
        let (id, secret) = (&stored.client_id, stored.client_secret.as_deref());
        let request = client_request(&client, &address, fields, id, secret);
        let response = request.send().await.map_err(|_| RevocationError::Unreachable)?;
        if !response.status().is_success() {
            return Err(RevocationError::Refused(response.status().as_u16()));
        }
    }
    Ok(())
}

/// Obtains an access token for an upstream server by the client credentials grant of OAuth, without any user.
pub(crate) async fn client_credentials_token(
    endpoint: &HttpEndpoint,
    client: &OAuthClient,
) -> Result<StoredCredentials, AuthError> {
    let (endpoint, client) = (endpoint.clone(), client.clone());
    wait_apart(move || async move { exchange(&endpoint, &client).await }).await
}

/// Waits on a thread of its own for a future of rmcp, which is not `Send`.
pub(super) async fn wait_apart<T, F>(future: impl FnOnce() -> F + Send + 'static) -> Result<T, AuthError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, AuthError>>,
{
    let runtime = tokio::runtime::Handle::current();
    let result = tokio::task::spawn_blocking(move || runtime.block_on(future())).await;
    result.unwrap_or_else(|error| Err(AuthError::InternalError(error.to_string())))
}

async fn exchange(endpoint: &HttpEndpoint, client: &OAuthClient) -> Result<StoredCredentials, AuthError> {
    let config = client_credentials_config(&endpoint.url, client)
        .map_err(|error| AuthError::ClientCredentialsError(error.to_string()))?;
    let OAuthDiscovery { mut manager, store, .. } = discover(endpoint, None).await?;
    manager.validate_client_credentials_metadata(&config)?;
    manager.configure_client_credentials(&config)?;
    manager.exchange_client_credentials(&config).await?;
    store.load().await?.ok_or(AuthError::AuthorizationRequired)
}

/// What is wrong with the client credentials in an upstream server's configuration.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("its oauth.client_id is missing")]
    NoClient,
    #[error("its oauth.client_secret or oauth.private_key is missing")]
    NoSecret,
    #[error("its oauth.signing_algorithm is none of RS256, RS384, RS512, ES256 and ES384")]
    UnknownAlgorithm,
}

/// Converts the configured client credentials for the upstream server at `url` to the form that rmcp needs. Returns an
/// error if they are incomplete or name an unknown algorithm.
pub(crate) fn client_credentials_config(
    url: &Url,
    client: &OAuthClient,
) -> Result<ClientCredentialsConfig, CredentialsError> {
    let client_id = client.client_id.clone().ok_or(CredentialsError::NoClient)?;
    let (scopes, resource) = (client.scopes.clone(), Some(url.to_string()));
    match (&client.private_key, &client.client_secret) {
        (Some(key), _) => Ok(ClientCredentialsConfig::PrivateKeyJwt {
            client_id,
            signing_key: key.as_bytes().to_vec(),
            signing_algorithm: algorithm(client.signing_algorithm.as_deref())?,
            token_endpoint_audience: None,
            scopes,
            resource,
        }),
        (None, Some(secret)) => Ok(ClientCredentialsConfig::ClientSecret {
            client_id,
            client_secret: secret.clone(),
            scopes,
            resource,
        }),
        (None, None) => Err(CredentialsError::NoSecret),
    }
}

fn algorithm(name: Option<&str>) -> Result<JwtSigningAlgorithm, CredentialsError> {
    match name {
        None | Some("RS256") => Ok(JwtSigningAlgorithm::RS256),
        Some("RS384") => Ok(JwtSigningAlgorithm::RS384),
        Some("RS512") => Ok(JwtSigningAlgorithm::RS512),
        Some("ES256") => Ok(JwtSigningAlgorithm::ES256),
        Some("ES384") => Ok(JwtSigningAlgorithm::ES384),
        Some(_) => Err(CredentialsError::UnknownAlgorithm),
    }
}
