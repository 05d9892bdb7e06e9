//! `[http]` and `[clients]`: who may come in, and how much each may use.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use lockhouse_engine::quotas::ClientLimits;
use lockhouse_front::access::{AccessSettings, TokenFile, Users, Way};
use lockhouse_policies::Rate;

use super::document::Document;
use super::error::ConfigError;
use super::http::Http;
use super::oauth;
use super::references::Surroundings;
use super::tables::Clients;

pub(super) fn settings(
    document: &Document,
    configuration: &Path,
    surroundings: &Surroundings,
) -> Result<AccessSettings, ConfigError> {
    let http = &document.http;
    let unusable = |reason: String| ConfigError::Unusable { path: configuration.to_owned(), reason };
    let oauth = http.oauth.as_ref().map(|written| oauth::settings(written, configuration, surroundings));
    let oauth = oauth.transpose();
    let oauth = oauth.map_err(|fault| ConfigError::Oauth { path: configuration.to_owned(), fault })?;
    if http.auth.has(Way::Oauth) && oauth.is_none() {
        return Err(unusable("auth = \"oauth\" needs [http.oauth] with issuer, audience and scopes".into()));
    }
    let users = Users::of(http.users.as_deref());
    let users = users.map_err(|source| ConfigError::Users { path: configuration.to_owned(), source })?;
    Ok(AccessSettings {
        auth: http.auth.clone(),
        tokens: token_file(http, configuration, surroundings),
        oauth,
        users,
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
