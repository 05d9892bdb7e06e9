//! Verifies the credentials of AI clients. Each request is authenticated on its own; earlier requests of its connection
//! do not count.

use std::sync::Arc;

use lockhouse_base::principal::Principal;
use lockhouse_messages::{AccessRefusal, Authentication};
use thiserror::Error;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::allowed_users::AllowedUsers;
use super::auth_method::{AuthMethod, AuthMode};
use super::oauth::{DpopProof, OauthSettings, ResourceServer};
use super::token_format;
use super::token_store::{TokenFile, TokenStore};
use super::unix_peer::UnixPeer;

/// Settings for the authentication of AI clients over HTTP.
#[derive(Clone, Debug)]
pub struct AuthSettings {
    pub mode: AuthMode,
    /// The token file; `None` if the host has no state directory.
    pub tokens: Option<TokenFile>,
    /// Settings of `[http.oauth]`; required if `auth` includes `oauth`.
    pub oauth: Option<OauthSettings>,
    pub users: AllowedUsers,
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

/// What shows who sends a request, as the engine has it: the token that a front passed on, or the user whom the kernel
/// reported to the engine itself.
#[derive(Clone, Copy)]
pub enum Evidence<'a> {
    /// A bearer token.
    Token(&'a str),
    /// An OAuth token with the proof that its sender has the key to which it is bound.
    BoundToken(&'a str, DpopProof<'a>),
    User(UnixPeer),
    Nothing,
}

/// Verifies the credentials of AI clients with the configured methods.
#[derive(Debug)]
pub struct Authenticator {
    /// The verifiers of the configured authentication methods. `None` if `auth = "none"`.
    verifiers: Option<Verifiers>,
    /// When the authenticator is dropped, stops the task that watches the token file.
    _stop_token_watch: DropGuard,
}

#[derive(Debug)]
struct Verifiers {
    tokens: Option<Arc<TokenStore>>,
    oauth: Option<ResourceServer>,
    users: Option<AllowedUsers>,
}

impl Authenticator {
    /// Sets up the configured methods. Must be called in a Tokio runtime, where a task watches the token file.
    ///
    /// # Errors
    /// [`AuthSetupError`], which says what to change.
    pub fn new(settings: AuthSettings) -> Result<Arc<Self>, AuthSetupError> {
        let AuthSettings { mode, tokens, oauth, users } = settings;
        let stop = CancellationToken::new();
        let verifiers = match mode.is_none() {
            true => None,
            false => Some(Verifiers::new(&mode, tokens, oauth, users, &stop)?),
        };
        Ok(Arc::new(Self { verifiers, _stop_token_watch: stop.drop_guard() }))
    }

    /// Returns the AI client that the evidence authenticates.
    ///
    /// # Errors
    /// The reason of the refusal.
    pub async fn authenticate(&self, evidence: Evidence<'_>) -> Result<Principal, AccessRefusal> {
        let Some(verifiers) = &self.verifiers else { return Ok(Principal::anonymous()) };
        match evidence {
            Evidence::Token(token) => verifiers.verify_token(token, None).await,
            Evidence::BoundToken(token, proof) => verifiers.verify_token(token, Some(proof)).await,
            Evidence::User(peer) => verifiers.principal_for_user(peer),
            Evidence::Nothing => Err(AccessRefusal::NoCredentials),
        }
    }

    /// Returns what clients need to know in order to authenticate.
    pub fn how_to_authenticate(&self) -> Authentication {
        let Some(Verifiers { tokens, oauth, users }) = &self.verifiers else {
            return Authentication::default();
        };
        Authentication {
            is_required: true,
            accepts_bearer: tokens.is_some() || oauth.is_some(),
            scope: oauth.as_ref().map(ResourceServer::scopes),
            proof_algorithms: oauth.as_ref().map(ResourceServer::proof_algorithms),
            hint: access_hint(tokens.is_some(), oauth.as_ref(), users.is_some()),
            metadata: oauth.as_ref().map(ResourceServer::metadata),
        }
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
        Ok(Self { tokens, oauth, users })
    }

    async fn verify_token(
        &self,
        token: &str,
        proof: Option<DpopProof<'_>>,
    ) -> Result<Principal, AccessRefusal> {
        match (&self.tokens, &self.oauth) {
            // No proof is needed for them, and none is looked at.
            (Some(tokens), _) if token.starts_with(token_format::PREFIX) => tokens.principal(token),
            (_, Some(oauth)) => oauth.principal(token, proof).await,
            _ => Err(AccessRefusal::MalformedToken),
        }
    }

    fn principal_for_user(&self, peer: UnixPeer) -> Result<Principal, AccessRefusal> {
        let Some(users) = &self.users else { return Err(AccessRefusal::NoCredentials) };
        let accepts_bearer = self.tokens.is_some() || self.oauth.is_some();
        users.principal(peer.uid()).ok_or(match accepts_bearer {
            true => AccessRefusal::NoCredentials,
            false => AccessRefusal::UnlistedUser,
        })
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
