//! Verifies OAuth access tokens: JSON Web Tokens (RFC 9068) that an authorization server signed for this server.

mod claims;
mod code_login;
mod dpop;
mod jwks_cache;
mod jwks_fetch;
mod jwt_validation;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use lockhouse_base::principal::{Principal, Validity};
use lockhouse_base::url_protection::is_protected;
use serde_json::json;
use thiserror::Error;
use tokio::time::Instant;
use url::Url;

use crate::certificates;
use crate::exact_name::is_exact_name;
use crate::memberships::memberships_of_claims;
use claims::{Binding, Claims};
pub use code_login::{BegunLogin, CodeClient, CodeLogin, CodeLoginError};
use dpop::AcceptedProofs;
pub use dpop::{DpopProof, DpopUse};
use jwks_cache::JwksCache;
pub use jwt_validation::algorithm;
use lockhouse_messages::{AccessRefusal, ResourceMetadata, TokenCertificate};

/// Path of the protected resource metadata (RFC 9728).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// Maximum number of characters of a token's subject (the claim `sub`). The log would truncate a longer subject, so
/// that two users could look alike.
const SUBJECT_CHARS_MAX: usize = 56;
/// The entry in the setting `scopes` that grants everything that the policy permits.
const ALL_SERVERS: &str = "*";

/// The settings of OAuth authentication: the table `[http.oauth]` of the configuration.
#[derive(Clone, Debug)]
pub struct OauthSettings {
    /// The URL of the authorization server (the issuer). `issuer_text` is its text as configured; the claim `iss` of
    /// tokens must equal that text byte for byte.
    pub issuer: Url,
    pub issuer_text: String,
    pub audience: String,
    /// The URL under which clients know this server (the OAuth resource).
    pub resource: Url,
    pub keys: KeySource,
    /// For each scope, the upstream servers and tools that it grants, as far as the policy permits them.
    pub scopes: BTreeMap<String, Vec<String>>,
    pub algorithms: Vec<Algorithm>,
    /// Whether tokens must be bound to a key or a certificate of their sender.
    pub dpop: DpopUse,
    /// Whether clients may show certificates, to which tokens can be bound.
    pub takes_certificates: bool,
    /// Accepted difference between the clocks of this host and of the authorization server.
    pub leeway: Duration,
    /// Minimum time between two attempts to fetch the public keys of the authorization server.
    pub refetch: Duration,
}

/// The location of the authorization server's JSON Web Key Set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    File(PathBuf),
    Url(Url),
    /// The URL in the member `jwks_uri` of the metadata that this issuer publishes.
    Issuer(Url),
}

/// Why a URL is not accepted as a source of public keys or metadata.
#[derive(Debug, Error)]
pub enum UntrustedUrl {
    #[error("{text:?} is not a URL: {source}")]
    Form { text: String, source: url::ParseError },
    #[error("{0:?} must begin with https://; http:// is allowed for loopback addresses only")]
    Plain(String),
}

/// Parses a URL from which public keys or metadata are fetched. The URL must use `https`, or `http` to a loopback
/// address, so that no third party can change the responses.
pub fn trusted_url(text: &str) -> Result<Url, UntrustedUrl> {
    let url = Url::parse(text).map_err(|source| UntrustedUrl::Form { text: text.to_owned(), source })?;
    match is_protected(&url) {
        true => Ok(url),
        false => Err(UntrustedUrl::Plain(text.to_owned())),
    }
}

/// What a request shows besides its token, by which its sender may use a token that is bound to it.
#[derive(Clone, Copy)]
pub(super) enum Possession<'a> {
    None,
    Key(DpopProof<'a>),
    Certificate(&'a TokenCertificate),
}

fn unproven(reason: &'static str) -> Result<(), AccessRefusal> {
    Err(AccessRefusal::InvalidProof(reason.into()))
}

fn invalid(reason: &'static str) -> Result<(), AccessRefusal> {
    Err(AccessRefusal::InvalidJwt(reason.into()))
}

/// The OAuth resource server: verifies access tokens and publishes the protected resource metadata.
#[derive(Debug)]
pub(super) struct ResourceServer {
    settings: OauthSettings,
    keys: JwksCache,
    proofs: AcceptedProofs,
}

impl ResourceServer {
    pub(super) fn new(settings: OauthSettings) -> Result<Self, reqwest::Error> {
        let keys = JwksCache::new(settings.keys.clone(), settings.issuer_text.clone(), settings.refetch)?;
        Ok(Self { settings, keys, proofs: AcceptedProofs::default() })
    }

    pub(super) fn issuer(&self) -> &Url {
        &self.settings.issuer
    }

    /// Returns the configured scopes, separated by spaces.
    pub(super) fn scopes(&self) -> String {
        self.settings.scopes.keys().cloned().collect::<Vec<_>>().join(" ")
    }

    /// Returns the algorithms of proofs (DPoP) that are accepted, separated by spaces.
    pub(super) fn proof_algorithms(&self) -> String {
        self.algorithm_names().join(" ")
    }

    fn algorithm_names(&self) -> Vec<String> {
        self.settings.algorithms.iter().map(|algorithm| format!("{algorithm:?}")).collect()
    }

    /// Returns the protected resource metadata (RFC 9728). Its URL is this server's URL with the well-known path inserted
    /// between host and path.
    pub(super) fn metadata(&self) -> ResourceMetadata {
        let mut url = self.settings.resource.clone();
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{METADATA_PATH}{path}"));
        url.set_query(None);
        url.set_fragment(None);
        let document = json!({
            "resource": self.settings.resource.as_str(),
            "authorization_servers": [self.settings.issuer_text],
            "scopes_supported": self.settings.scopes.keys().collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
            "tls_client_certificate_bound_access_tokens": self.settings.takes_certificates,
            "dpop_signing_alg_values_supported": self.algorithm_names(),
            "dpop_bound_access_tokens_required": self.settings.dpop == DpopUse::Required,
            "resource_name": "Lockhouse",
        });
        ResourceMetadata { url: url.into(), document }
    }

    /// Verifies an access token, and the proof that its sender has the key to which it is bound. Returns the principal (client
    /// identity) for the token's subject, limited to the servers and tools that its scopes grant.
    pub(super) async fn principal(
        &self,
        token: &str,
        possession: Possession<'_>,
    ) -> Result<Principal, AccessRefusal> {
        let claims = self.claims(token).await?;
        self.check_binding(token, &claims, possession)?;
        let subject = claims.sub.as_str();
        // OpenID Connect requires ASCII.
        if !is_exact_name(subject, SUBJECT_CHARS_MAX) {
            return Err(AccessRefusal::InvalidJwt(
                "the subject of the token must have 1 to 56 printable ASCII characters, without spaces"
                    .into(),
            ));
        }
        let only = self.granted_servers(&claims)?;
        let name = format!("{subject}@{}", self.settings.issuer_text);
        let left = Duration::from_secs(claims.exp.saturating_sub(jsonwebtoken::get_current_timestamp()));
        // A connection lasts at most 24 hours with one token.
        let left = (left + self.settings.leeway).min(Duration::from_hours(24));
        let validity = Validity::Until(Instant::now() + left);
        let principal = Principal::authenticated(&name, &format!("oauth:{subject}"), only, validity);
        Ok(principal.member_of(memberships_of_claims(&claims.others)))
    }

    fn check_binding(
        &self,
        token: &str,
        claims: &Claims,
        possession: Possession<'_>,
    ) -> Result<(), AccessRefusal> {
        match (claims.binding(), possession) {
            (Binding::Key(key), Possession::Key(proof)) => {
                let now = jsonwebtoken::get_current_timestamp();
                self.proofs.verify(&self.settings, token, key, proof, now)
            }
            (Binding::Key(_), Possession::Certificate(_) | Possession::None) => {
                unproven("the token is bound to a key: send it as Authorization: DPoP, with a proof")
            }
            (Binding::Certificate(bound_to), Possession::Certificate(shown)) => {
                match certificates::thumbprint(shown) {
                    Ok(shown) if shown == bound_to => Ok(()),
                    Ok(_) => invalid("the token is bound to another client certificate"),
                    Err(reason) => Err(AccessRefusal::InvalidCertificate(reason.into())),
                }
            }
            (Binding::Certificate(_), Possession::Key(_) | Possession::None) => invalid(
                "the token is bound to a client certificate, and the connection has none: send it as Authorization: Bearer on \
                     a connection with this certificate",
            ),
            (Binding::Unknown, _) => {
                invalid("the token is bound to something that this server cannot verify")
            }
            (Binding::None, Possession::Key(_)) => {
                unproven("the token is bound to no key: send it as Authorization: Bearer")
            }
            (Binding::None, _) if self.settings.dpop == DpopUse::Required => unproven(
                "this server accepts only tokens that are bound to a key (DPoP) or to a client certificate",
            ),
            (Binding::None, _) => Ok(()),
        }
    }

    /// Returns all servers and tools that the token's scopes grant, or `None` for everything that the policy permits.
    /// Fails if none of the scopes is configured.
    fn granted_servers(&self, claims: &Claims) -> Result<Option<Vec<String>>, AccessRefusal> {
        let granting: Vec<&Vec<String>> =
            claims.scopes().filter_map(|scope| self.settings.scopes.get(scope)).collect();
        if granting.is_empty() {
            return Err(AccessRefusal::Scope);
        }
        let granted_servers: Vec<String> = granting.into_iter().flatten().cloned().collect();
        Ok((!granted_servers.iter().any(|name| name == ALL_SERVERS)).then_some(granted_servers))
    }
}
