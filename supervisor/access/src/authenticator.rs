//! Verifies the credentials of AI clients. Each request is authenticated on its own; earlier requests of its connection
//! do not count.

use std::sync::Arc;

use lockhouse_base::principal::Principal;
use lockhouse_messages::{AccessRefusal, Authentication, ClientCertificate, TokenCertificate};
use thiserror::Error;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::allowed_users::AllowedUsers;
use super::auth_method::{AuthMethod, AuthMode};
use super::certificates::{CertificateSettings, ClientCertificates, TrustFileError};
use super::oauth::{DpopProof, OauthSettings, Possession, ResourceServer};
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
    /// Settings of `[http.client_certificates]`; required if `auth` includes `certificate`.
    pub certificates: Option<CertificateSettings>,
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
    #[error("auth = \"certificate\" needs [http.client_certificates] with authorities")]
    NoAuthorities,
    #[error(transparent)]
    TrustFile(#[from] TrustFileError),
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
    /// A bearer token with the certificate of its client, to which an OAuth token may be bound.
    CertificateToken(&'a str, &'a TokenCertificate),
    Certificate(&'a ClientCertificate),
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
    certificates: Option<ClientCertificates>,
    users: Option<AllowedUsers>,
}

impl Authenticator {
    /// Sets up the configured methods. Must be called in a Tokio runtime, where a task watches the token file.
    ///
    /// # Errors
    /// [`AuthSetupError`], which says what to change.
    pub fn new(settings: AuthSettings) -> Result<Arc<Self>, AuthSetupError> {
        let stop = CancellationToken::new();
        let verifiers = match settings.mode.is_none() {
            true => None,
            false => Some(Verifiers::new(settings, &stop)?),
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
            Evidence::Token(token) => verifiers.verify_token(token, Possession::None).await,
            Evidence::BoundToken(token, proof) => verifiers.verify_token(token, Possession::Key(proof)).await,
            Evidence::CertificateToken(token, certificate) => {
                verifiers.verify_token(token, Possession::Certificate(certificate)).await
            }
            Evidence::Certificate(certificate) => match &verifiers.certificates {
                Some(certificates) => certificates.principal(certificate),
                // As if the client had shown none.
                None => Err(AccessRefusal::NoCredentials),
            },
            Evidence::User(peer) => verifiers.principal_for_user(peer),
            Evidence::Nothing => Err(AccessRefusal::NoCredentials),
        }
    }

    /// Returns the digests of the tokens that were revoked on this host.
    pub fn revoked_tokens(&self) -> Vec<[u8; 32]> {
        self.token_store().map(TokenStore::revoked).unwrap_or_default()
    }

    /// Revokes the token with this digest, which was revoked on another host of the cluster.
    pub fn revoke_token(&self, digest: [u8; 32]) {
        if let Some(tokens) = self.token_store() {
            tokens.revoke_elsewhere(digest);
        }
    }

    fn token_store(&self) -> Option<&TokenStore> {
        self.verifiers.as_ref()?.tokens.as_deref()
    }

    /// Returns what clients need to know in order to authenticate.
    pub fn how_to_authenticate(&self) -> Authentication {
        let Some(verifiers) = &self.verifiers else { return Authentication::default() };
        let Verifiers { tokens, oauth, .. } = verifiers;
        Authentication {
            is_required: true,
            accepts_bearer: tokens.is_some() || oauth.is_some(),
            scope: oauth.as_ref().map(ResourceServer::scopes),
            proof_algorithms: oauth.as_ref().map(ResourceServer::proof_algorithms),
            hint: verifiers.access_hint(),
            metadata: oauth.as_ref().map(ResourceServer::metadata),
        }
    }
}

impl Verifiers {
    fn new(settings: AuthSettings, stop: &CancellationToken) -> Result<Self, AuthSetupError> {
        let AuthSettings { mode, tokens, oauth, certificates, users } = settings;
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
        let certificates = match (mode.has(AuthMethod::Certificate), certificates) {
            (false, _) => None,
            (true, Some(settings)) => Some(ClientCertificates::new(settings)?),
            (true, None) => return Err(AuthSetupError::NoAuthorities),
        };
        let users = mode.has(AuthMethod::Peer).then_some(users);
        Ok(Self { tokens, oauth, certificates, users })
    }

    async fn verify_token(
        &self,
        token: &str,
        possession: Possession<'_>,
    ) -> Result<Principal, AccessRefusal> {
        match (&self.tokens, &self.oauth) {
            // No proof is needed for them, and none is looked at.
            (Some(tokens), _) if token.starts_with(token_format::PREFIX) => tokens.principal(token),
            (_, Some(oauth)) => oauth.principal(token, possession).await,
            _ => Err(AccessRefusal::MalformedToken),
        }
    }

    /// Returns instructions for a user on how to get access with the configured authentication methods.
    fn access_hint(&self) -> String {
        let create = "`lockhouse token create NAME` on the server's host creates a token";
        let methods = [
            self.tokens.as_ref().map(|_| create.to_owned()),
            self.oauth.as_ref().map(|oauth| format!("{} issues tokens", oauth.issuer())),
            self.certificates
                .as_ref()
                .map(|_| "a client certificate of the server's operator is accepted".to_owned()),
            self.users
                .as_ref()
                .map(|_| "a user of the server's host connects through its Unix domain socket".to_owned()),
        ];
        methods.into_iter().flatten().collect::<Vec<_>>().join("; or: ")
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
