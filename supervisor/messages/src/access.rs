//! The engine's answers to credentials: the access that it grants, or the reason of its refusal.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{Owner, Role, Roles};

/// The id of a grant: an access that the engine granted on one connection of a front. It is valid on that connection
/// alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantId(Uuid);

impl GrantId {
    /// The id of the access for [`Credential::Connection`](crate::Credential::Connection). It is the same on every
    /// connection, so that a front can repeat a request on its next connection.
    pub const CONNECTION: Self = Self(Uuid::nil());

    /// Makes an id for a new grant.
    pub fn new_random() -> Self {
        Self(Uuid::now_v7())
    }
}

/// The access that the engine granted for a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub grant: GrantId,
    /// Whom the sessions, runs and results of this access belong to.
    pub owner: Owner,
    /// The authenticated name, which shows the authentication method and is unique to this client. `None` without
    /// authentication.
    pub name: Option<String>,
    /// The authenticated client's name in the policy and the audit log.
    pub client: Option<String>,
    /// The upstream servers and tools that the access is restricted to; `None` for all that the policy permits.
    pub only: Option<Vec<String>>,
    pub roles: Roles,
    /// The time after which event streams of this access end, and the engine refuses its requests. Runs that have begun
    /// continue. `None` if the access does not expire; it may still be revoked
    /// ([`ToFront::AccessEnded`](crate::ToFront::AccessEnded)).
    pub expires_in: Option<Duration>,
}

/// Why a credential, or a request with a grant, is refused. No reason repeats anything that the client sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessRefusal {
    /// The request has no header `Authorization`, and its connection identifies no user that may authenticate without
    /// one.
    NoCredentials,
    /// The request has no header `Authorization`, its Unix domain socket connection belongs to a user that the
    /// configuration does not allow, and the server accepts no bearer tokens.
    UnlistedUser,
    DuplicateHeader,
    NotBearer,
    /// The token starts like a Lockhouse token but is malformed, or it is another kind of token and no authorization
    /// server is configured.
    MalformedToken,
    UnknownToken,
    RevokedToken,
    ExpiredToken,
    /// The token file cannot be read, or other users may write to it.
    TokensUnreadable,
    /// The OAuth access token is invalid, for this reason.
    InvalidJwt(Cow<'static, str>),
    /// The request does not prove that its sender has the key to which the OAuth access token is bound (DPoP), for this reason.
    InvalidProof(Cow<'static, str>),
    /// The certificate of the client does not authenticate it, or its token is bound to another one, for this reason.
    InvalidCertificate(Cow<'static, str>),
    /// None of the OAuth token's scopes is in the setting `scopes` of `[http.oauth]`.
    Scope,
    /// The files with the authorities of client certificates cannot be used.
    AuthoritiesUnreadable,
    /// The JSON Web Key Set of the authorization server cannot be fetched, and no recent one is cached.
    JwksUnavailable,
    /// The engine accepts no credential of this kind on this connection, because it has no reason to believe the front.
    CredentialNotAccepted,
    /// The engine knows no such connection to a Unix domain socket: it is closed, or the engine did not pass it to this front.
    UnknownConnection,
    /// The engine has no such grant on this connection: the access has ended, or the engine never issued it.
    EndedGrant,
    /// The access does not include the role that the request requires.
    MissingRole(Role),
    /// The engine cannot be reached, or failed to verify the credential. Only a front's end of the connection makes this.
    EngineUnavailable,
}

impl AccessRefusal {
    /// Whether the credential may be valid, and cannot be verified now.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::TokensUnreadable
                | Self::AuthoritiesUnreadable
                | Self::JwksUnavailable
                | Self::EngineUnavailable
        )
    }

    /// Returns the reason as a sentence for the client and for the service log.
    pub fn description(&self) -> Cow<'static, str> {
        match self {
            Self::NoCredentials => {
                "this server requires authentication: send the header Authorization: Bearer TOKEN".into()
            }
            Self::UnlistedUser => "this user of the server's host is not allowed to use this server".into(),
            Self::DuplicateHeader => "there is more than one Authorization header".into(),
            Self::NotBearer => "the Authorization header is not of the form: Bearer TOKEN".into(),
            Self::MalformedToken => {
                "this is not a token of this server, or it was not copied completely".into()
            }
            Self::UnknownToken => "this server does not know this token".into(),
            Self::RevokedToken => "the token was revoked".into(),
            Self::ExpiredToken => "the token has expired".into(),
            Self::TokensUnreadable => "no token can be checked now; the log of the server says why".into(),
            Self::InvalidJwt(reason) => reason.clone(),
            Self::InvalidProof(reason) => format!("the DPoP proof is not accepted: {reason}").into(),
            Self::InvalidCertificate(reason) => {
                format!("the client certificate is not accepted: {reason}").into()
            }
            Self::Scope => "none of the token's scopes grants anything here".into(),
            Self::AuthoritiesUnreadable => {
                "no client certificate can be checked now; the log of the server says why".into()
            }
            Self::JwksUnavailable => {
                "the token cannot be checked now, since the keys of the authorization server are unavailable"
                    .into()
            }
            Self::CredentialNotAccepted => "this kind of credential is not accepted here".into(),
            Self::UnknownConnection => "the server does not know this connection: connect again".into(),
            Self::EndedGrant => "the token has expired or was revoked: authenticate again".into(),
            Self::MissingRole(role) => format!("this access does not permit {}", role.describe()).into(),
            Self::EngineUnavailable => {
                "no request can be authenticated now; the log of the server says why".into()
            }
        }
    }
}

/// How AI clients authenticate over HTTP: what a front puts into its refusals, and the document by which clients find the
/// authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Authentication {
    /// Whether requests need a credential. Without authentication, a front passes none on.
    pub is_required: bool,
    /// Whether bearer tokens are accepted.
    pub accepts_bearer: bool,
    /// The algorithms of proofs for tokens that are bound to a key (DPoP), separated by spaces. `None` without OAuth.
    #[serde(default)]
    pub proof_algorithms: Option<String>,
    /// OAuth scopes that grant access, separated by spaces. `None` without OAuth.
    pub scope: Option<String>,
    /// Instructions for the user on how to get access, such as the command that creates a token.
    pub hint: String,
    /// The protected resource metadata (RFC 9728), which names the authorization server. `None` without OAuth.
    pub metadata: Option<ResourceMetadata>,
}

/// The protected resource metadata (RFC 9728).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceMetadata {
    pub url: String,
    pub document: Value,
}
