//! Tokens of an authorization server: JSON Web Tokens (RFC 9068) that it signed for this server and no other.

mod claims;
mod fetch;
mod keys;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL};
use axum::routing::get;
use axum::{Json, Router};
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use lockhouse_base::principal::{Principal, Standing};
use serde_json::json;
use thiserror::Error;
use tokio::time::Instant;
use url::Url;

use super::refused::Why;
use claims::{Claims, in_words};
use keys::Keys;

/// Where clients look for what is said of this server (RFC 9728).
const METADATA: &str = "/.well-known/oauth-protected-resource";
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Characters of a subject: one that is cut in the log might stand for somebody else.
const SUBJECT_CHARS_MAX: usize = 56;
/// In `scopes`: everything that the policy permits.
const EVERYTHING: &str = "*";

/// `[http.oauth]`
#[derive(Clone, Debug)]
pub struct OauthSettings {
    /// As tokens say it, letter by letter.
    pub issuer: Url,
    pub issuer_text: String,
    pub audience: String,
    /// Under which URL clients know this server.
    pub resource: Url,
    pub keys: KeySource,
    /// What each scope grants of what the policy permits.
    pub scopes: BTreeMap<String, Vec<String>>,
    pub algorithms: Vec<Algorithm>,
    /// How far clocks may be apart.
    pub leeway: Duration,
    /// Between two looks for keys.
    pub refetch: Duration,
}

/// Where the keys of the authorization server are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    File(PathBuf),
    Url(Url),
    /// Where the issuer says.
    Issuer(Url),
}

/// An algorithm by its name, of those that need a key pair: with a shared secret whoever checks tokens could make them.
pub fn algorithm(name: &str) -> Option<Algorithm> {
    let algorithm: Algorithm = name.parse().ok()?;
    let secret = [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512].contains(&algorithm);
    (!secret).then_some(algorithm)
}

/// Whether `typ` of a header is that of an access token (RFC 9068), or of a token that does not say more. Other kinds (of DPoP,
/// of a logout, of an introspection) are signed with the same keys, and say something else.
fn is_access_token(typ: &str) -> bool {
    let kind = typ.to_ascii_lowercase();
    ["jwt", "at+jwt"].contains(&kind.strip_prefix("application/").unwrap_or(&kind))
}

/// A URL whose answers somebody between could change, or none at all.
#[derive(Debug, Error)]
pub enum UntrustedUrl {
    #[error("{text:?} is no URL: {source}")]
    Form { text: String, source: url::ParseError },
    #[error("{0:?} must begin with https://; http:// is for this machine alone")]
    Plain(String),
}

/// A URL whose answers nobody between can change; on this machine there is nobody between.
pub fn trusted_url(text: &str) -> Result<Url, UntrustedUrl> {
    let url = Url::parse(text).map_err(|source| UntrustedUrl::Form { text: text.to_owned(), source })?;
    let loopback = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if loopback => Ok(url),
        _ => Err(UntrustedUrl::Plain(text.to_owned())),
    }
}

/// This server, as OAuth sees it.
#[derive(Debug)]
pub(super) struct ResourceServer {
    settings: OauthSettings,
    keys: Keys,
}

impl ResourceServer {
    pub(super) fn new(settings: OauthSettings) -> Result<Self, reqwest::Error> {
        let keys = Keys::new(settings.keys.clone(), settings.issuer_text.clone(), settings.refetch)?;
        Ok(Self { settings, keys })
    }

    pub(super) fn issuer(&self) -> &Url {
        &self.settings.issuer
    }

    /// Those that grant something.
    pub(super) fn scopes(&self) -> String {
        self.settings.scopes.keys().cloned().collect::<Vec<_>>().join(" ")
    }

    /// Between the host and the path of the resource, as RFC 9728 has it.
    pub(super) fn metadata_url(&self) -> String {
        let mut url = self.settings.resource.clone();
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{METADATA}{path}"));
        url.set_query(None);
        url.set_fragment(None);
        url.into()
    }

    pub(super) fn metadata(&self) -> Router {
        let told = json!({
            "resource": self.settings.resource.as_str(),
            "authorization_servers": [self.settings.issuer_text],
            "scopes_supported": self.settings.scopes.keys().collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
            "resource_name": "Lockhouse",
        });
        let answer = move || {
            let told = told.clone();
            // There is nothing in it that is not for everybody, web pages included.
            async move { ([(ACCESS_CONTROL_ALLOW_ORIGIN, "*"), (CACHE_CONTROL, "max-age=300")], Json(told)) }
        };
        Router::new().route(METADATA, get(answer.clone())).route(&format!("{METADATA}/mcp"), get(answer))
    }

    /// Whom a token is about, if it is for us and counts now.
    pub(super) async fn principal(&self, token: &str) -> Result<Principal, Why> {
        let claims = self.claims(token).await?;
        let subject = claims.sub.as_str();
        // As OpenID Connect has it, a subject is ASCII: of any other text the policy and people could take two for one.
        let is_shown = subject.bytes().all(|byte| byte.is_ascii_graphic());
        if subject.is_empty() || subject.len() > SUBJECT_CHARS_MAX || !is_shown {
            return Err(Why::Foreign(
                "the subject of the token cannot be shown as it is: it must have 1 to 56 characters of ASCII, without spaces",
            ));
        }
        let only = self.granted(&claims)?;
        let name = format!("{subject}@{}", self.settings.issuer_text);
        let left = Duration::from_secs(claims.exp.saturating_sub(jsonwebtoken::get_current_timestamp()));
        // Nobody's connection outlives a day by one token.
        let left = (left + self.settings.leeway).min(Duration::from_hours(24));
        Ok(Principal::proven(
            &name,
            &format!("oauth:{subject}"),
            only,
            Standing::Until(Instant::now() + left),
        ))
    }

    async fn claims(&self, token: &str) -> Result<Claims, Why> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Why::Foreign("the token is too long"));
        }
        // An algorithm that is none, or is not known, has no header here.
        let header =
            decode_header(token).map_err(|_| Why::Foreign("the token is no signed JSON Web Token"))?;
        if !self.settings.algorithms.contains(&header.alg) {
            return Err(Why::Foreign("the token is signed with an algorithm that is not accepted here"));
        }
        if !header.typ.as_deref().is_none_or(is_access_token) {
            return Err(Why::Foreign("the token is of another kind than an access token, as its typ says"));
        }
        if header.crit.is_some() {
            return Err(Why::Foreign("the token asks for an extension that is not known here"));
        }
        let key = self.keys.key(header.kid.as_deref(), header.alg).await?;
        let mut validation = Validation::new(header.alg);
        validation.leeway = self.settings.leeway.as_secs();
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_issuer(&[&self.settings.issuer_text]);
        let decoded = decode::<Claims>(token, &key, &validation)
            .map_err(|error| Why::Foreign(in_words(error.kind())))?;
        let claims = decoded.claims;
        // A list of issuers is no issuer.
        if claims.iss != self.settings.issuer_text {
            return Err(Why::Foreign("the token is of another issuer"));
        }
        let now = jsonwebtoken::get_current_timestamp();
        if claims.iat.is_some_and(|issued| issued > now.saturating_add(self.settings.leeway.as_secs())) {
            return Err(Why::Foreign("the token was issued in the future: compare the clocks"));
        }
        Ok(claims)
    }

    /// What all scopes of the token grant together; None for everything.
    fn granted(&self, claims: &Claims) -> Result<Option<Vec<String>>, Why> {
        let granting: Vec<&Vec<String>> =
            claims.scopes().filter_map(|scope| self.settings.scopes.get(scope)).collect();
        if granting.is_empty() {
            return Err(Why::Scope);
        }
        let granted: Vec<String> = granting.into_iter().flatten().cloned().collect();
        Ok((!granted.iter().any(|name| name == EVERYTHING)).then_some(granted))
    }
}
