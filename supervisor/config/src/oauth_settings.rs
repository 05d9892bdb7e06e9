//! Validates the configuration table `[http.oauth]`: which OAuth tokens are accepted, and which tools their scopes
//! permit.

use std::path::Path;
use std::time::Duration;

use lockhouse_access::{KeySource, OauthSettings, UntrustedUrl, algorithm, trusted_url};
use lockhouse_gate::grant_error;
use url::Url;

use super::http_tables::Oauth;
use super::placeholders::Environment;

/// The signature algorithms of tokens that are accepted by default: the common ones for RSA and elliptic curves.
const ALGORITHMS: [&str; 6] = ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"];
/// The maximum length of a scope name in bytes. RFC 6749 restricts only the characters of scope names.
const SCOPE_BYTES_MAX: usize = 200;

/// Why the configuration table `[http.oauth]` is invalid.
#[derive(Debug, thiserror::Error)]
pub enum OauthError {
    #[error("{key}: {source}")]
    Url { key: &'static str, source: UntrustedUrl },
    #[error(
        "audience: set the audience that tokens must contain, so that tokens for other services are rejected"
    )]
    NoAudience,
    #[error(
        "resource: set the URL under which clients know this server, since the audience is not a URL, such as \
         \"https://lockhouse.example.com/mcp\""
    )]
    NoResource,
    #[error(
        "algorithms: {0:?} is not a supported algorithm with a key pair; common ones are RS256 and ES256"
    )]
    Algorithm(String),
    #[error("scopes and algorithms: with an empty list no token would be accepted")]
    NothingAccepted,
    #[error("scopes: {0:?} is not a valid name of a scope")]
    ScopeName(String),
    #[error("scopes: {scope:?}: {reason}")]
    Grant { scope: String, reason: String },
}

pub(super) fn oauth_settings(
    table: &Oauth,
    takes_certificates: bool,
    configuration: &Path,
    environment: &Environment,
) -> Result<OauthSettings, OauthError> {
    let issuer = url("issuer", &table.issuer)?;
    if table.audience.is_empty() {
        return Err(OauthError::NoAudience);
    }
    let resource = match &table.resource {
        Some(resource) => url("resource", resource)?,
        None => trusted_url(&table.audience).map_err(|_| OauthError::NoResource)?,
    };
    let keys = match &table.jwks {
        None => KeySource::Issuer(issuer.clone()),
        Some(text) if text.contains("://") => KeySource::Url(url("jwks", text)?),
        Some(path) => {
            let beside = configuration.parent().unwrap_or(Path::new(""));
            KeySource::File(beside.join(environment.expand_home(path)))
        }
    };
    let named = table.algorithms.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let named: Vec<&str> = named.unwrap_or(ALGORITHMS.to_vec());
    let known = |name: &&str| algorithm(name).ok_or_else(|| OauthError::Algorithm((*name).to_owned()));
    let algorithms = named.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    if table.scopes.is_empty() || algorithms.is_empty() {
        return Err(OauthError::NothingAccepted);
    }
    table.scopes.iter().try_for_each(|(scope, grants)| check_scope(scope, grants))?;
    Ok(OauthSettings {
        issuer,
        issuer_text: table.issuer.clone(),
        audience: table.audience.clone(),
        resource,
        keys,
        scopes: table.scopes.clone(),
        algorithms,
        dpop: table.dpop,
        takes_certificates,
        leeway: Duration::from_secs(table.leeway_seconds.into()),
        refetch: Duration::from_secs(table.refetch_seconds.into()),
    })
}

fn url(key: &'static str, text: &str) -> Result<Url, OauthError> {
    trusted_url(text).map_err(|source| OauthError::Url { key, source })
}

fn check_scope(scope: &str, grants: &[String]) -> Result<(), OauthError> {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if scope.is_empty() || scope.len() > SCOPE_BYTES_MAX || !scope.bytes().all(fits) {
        return Err(OauthError::ScopeName(scope.to_owned()));
    }
    match grants.iter().filter(|name| *name != "*").find_map(|name| grant_error(name)) {
        Some(reason) => Err(OauthError::Grant { scope: scope.to_owned(), reason: reason.to_string() }),
        None => Ok(()),
    }
}
