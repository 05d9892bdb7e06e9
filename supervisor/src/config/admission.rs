//! `[http]` and `[clients]`: who may come in, and how much each may use.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use lockhouse_engine::quotas::ClientLimits;
use lockhouse_front::access::{
    AccessSettings, KeySource, OauthSettings, TokenFile, Users, Way, algorithm, trusted_url,
};
use lockhouse_gate::no_grant;
use lockhouse_policies::Rate;

use super::ConfigError;
use super::document::{Clients, Document};
use super::http::Http;
use super::http::Oauth;
use super::references::Surroundings;

/// Those of RSA and of elliptic curves that are in use.
const ALGORITHMS: [&str; 6] = ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"];
/// In the name of a scope, as RFC 6749 has it.
const SCOPE_BYTES_MAX: usize = 200;

pub(super) fn settings(
    document: &Document,
    configuration: &Path,
    surroundings: &Surroundings,
) -> Result<AccessSettings, ConfigError> {
    let http = &document.http;
    let unusable = |reason: String| ConfigError::Unusable { path: configuration.to_owned(), reason };
    let oauth = http.oauth.as_ref().map(|written| oauth(written, configuration, surroundings)).transpose();
    let oauth = oauth.map_err(|reason| unusable(format!("[http.oauth]: {reason}")))?;
    if http.auth.has(Way::Oauth) && oauth.is_none() {
        return Err(unusable("auth = \"oauth\" needs [http.oauth] with issuer, audience and scopes".into()));
    }
    Ok(AccessSettings {
        auth: http.auth.clone(),
        tokens: token_file(http, configuration, surroundings),
        oauth,
        users: Users::of(http.users.as_deref()).map_err(unusable)?,
        requests: limits(&document.clients).requests,
    })
}

pub(super) fn token_file(
    http: &Http,
    configuration: &Path,
    surroundings: &Surroundings,
) -> Option<TokenFile> {
    let beside = configuration.parent().unwrap_or(Path::new(""));
    let named =
        http.tokens.as_ref().map(|path| beside.join(surroundings.expand_home(&path.to_string_lossy())));
    named
        .or_else(|| Some(lockhouse_base::directories::state()?.join("client-tokens.json")))
        .map(TokenFile::at)
}

pub(super) fn limits(written: &Clients) -> ClientLimits {
    // What is no rate was refused when the file was read.
    let closed = Rate { calls: NonZeroU32::MIN, per: Duration::from_hours(1), burst: NonZeroU32::MIN };
    let rate = |text: &str| Rate::parse(text).unwrap_or(closed);
    ClientLimits {
        requests: rate(&written.requests),
        runs: rate(&written.runs),
        running: written.running as usize,
        sessions: written.sessions as usize,
    }
}

fn oauth(
    written: &Oauth,
    configuration: &Path,
    surroundings: &Surroundings,
) -> Result<OauthSettings, String> {
    let issuer = trusted_url(&written.issuer).map_err(|reason| format!("issuer: {reason}"))?;
    if written.audience.is_empty() {
        return Err("audience: say for whom tokens must be; one for somebody else must not count here".into());
    }
    let resource = match &written.resource {
        Some(resource) => trusted_url(resource).map_err(|reason| format!("resource: {reason}"))?,
        None => trusted_url(&written.audience).map_err(|_| {
            "resource: say under which URL clients know this server, since the audience is none, such as \
             \"https://lockhouse.example.com/mcp\""
                .to_owned()
        })?,
    };
    let keys = match &written.jwks {
        None => KeySource::Issuer(issuer.clone()),
        Some(url) if url.contains("://") => {
            KeySource::Url(trusted_url(url).map_err(|reason| format!("jwks: {reason}"))?)
        }
        Some(path) => {
            let beside = configuration.parent().unwrap_or(Path::new(""));
            KeySource::File(beside.join(surroundings.expand_home(path)))
        }
    };
    let named = written.algorithms.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let named: Vec<&str> = named.unwrap_or(ALGORITHMS.to_vec());
    let algorithms = named.iter().map(|name| {
        algorithm(name).ok_or_else(|| {
            format!("algorithms: {name:?} is none that needs a key pair; usual are RS256 and ES256")
        })
    });
    let algorithms = algorithms.collect::<Result<Vec<_>, String>>()?;
    if written.scopes.is_empty() || algorithms.is_empty() {
        return Err("scopes and algorithms: with none of them nobody could come in".into());
    }
    for (scope, grants) in &written.scopes {
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if scope.is_empty() || scope.len() > SCOPE_BYTES_MAX || !scope.bytes().all(fits) {
            return Err(format!("scopes: {scope:?} cannot be the name of a scope"));
        }
        if let Some(wrong) = grants.iter().filter(|name| *name != "*").find_map(|name| no_grant(name)) {
            return Err(format!("scopes: {scope:?}: {wrong}"));
        }
    }
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
