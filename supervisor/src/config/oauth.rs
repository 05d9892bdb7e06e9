//! `[http.oauth]`: whose tokens count, and what their scopes permit.

use std::path::Path;
use std::time::Duration;

use lockhouse_front::access::{KeySource, OauthSettings, UntrustedUrl, algorithm, trusted_url};
use lockhouse_gate::no_grant;
use url::Url;

use super::http::Oauth;
use super::references::Surroundings;

/// Those of RSA and of elliptic curves that are in use.
const ALGORITHMS: [&str; 6] = ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"];
/// In the name of a scope, as RFC 6749 has it.
const SCOPE_BYTES_MAX: usize = 200;

/// Why it cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthFault {
    #[error("{key}: {source}")]
    Url { key: &'static str, source: UntrustedUrl },
    #[error("audience: say for whom tokens must be; one for somebody else must not count here")]
    NoAudience,
    #[error(
        "resource: say under which URL clients know this server, since the audience is none, such as \
         \"https://lockhouse.example.com/mcp\""
    )]
    NoResource,
    #[error("algorithms: {0:?} is none that needs a key pair; usual are RS256 and ES256")]
    Algorithm(String),
    #[error("scopes and algorithms: with none of them nobody could come in")]
    Nobody,
    #[error("scopes: {0:?} cannot be the name of a scope")]
    ScopeName(String),
    #[error("scopes: {scope:?}: {reason}")]
    Grant { scope: String, reason: String },
}

pub(super) fn settings(
    written: &Oauth,
    configuration: &Path,
    surroundings: &Surroundings,
) -> Result<OauthSettings, OauthFault> {
    let issuer = url("issuer", &written.issuer)?;
    if written.audience.is_empty() {
        return Err(OauthFault::NoAudience);
    }
    let resource = match &written.resource {
        Some(resource) => url("resource", resource)?,
        None => trusted_url(&written.audience).map_err(|_| OauthFault::NoResource)?,
    };
    let keys = match &written.jwks {
        None => KeySource::Issuer(issuer.clone()),
        Some(text) if text.contains("://") => KeySource::Url(url("jwks", text)?),
        Some(path) => {
            let beside = configuration.parent().unwrap_or(Path::new(""));
            KeySource::File(beside.join(surroundings.expand_home(path)))
        }
    };
    let named = written.algorithms.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let named: Vec<&str> = named.unwrap_or(ALGORITHMS.to_vec());
    let known = |name: &&str| algorithm(name).ok_or_else(|| OauthFault::Algorithm((*name).to_owned()));
    let algorithms = named.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    if written.scopes.is_empty() || algorithms.is_empty() {
        return Err(OauthFault::Nobody);
    }
    written.scopes.iter().try_for_each(|(scope, grants)| check_scope(scope, grants))?;
    Ok(OauthSettings {
        issuer,
        issuer_text: written.issuer.clone(),
        audience: written.audience.clone(),
        resource,
        keys,
        scopes: written.scopes.clone(),
        algorithms,
        leeway: Duration::from_secs(written.leeway_seconds.into()),
        refetch: Duration::from_secs(written.refetch_seconds.into()),
    })
}

fn url(key: &'static str, text: &str) -> Result<Url, OauthFault> {
    trusted_url(text).map_err(|source| OauthFault::Url { key, source })
}

fn check_scope(scope: &str, grants: &[String]) -> Result<(), OauthFault> {
    let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if scope.is_empty() || scope.len() > SCOPE_BYTES_MAX || !scope.bytes().all(fits) {
        return Err(OauthFault::ScopeName(scope.to_owned()));
    }
    match grants.iter().filter(|name| *name != "*").find_map(|name| no_grant(name)) {
        Some(reason) => Err(OauthFault::Grant { scope: scope.to_owned(), reason: reason.to_string() }),
        None => Ok(()),
    }
}
