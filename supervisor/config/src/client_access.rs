//! Converts the configuration tables `[http]` and `[clients]` into authentication settings and limits per AI client.

use std::path::Path;
use std::time::Duration;

use lockhouse_access::{AllowedUsers, AuthMethod, AuthSettings, KeySource, TokenFile};
use lockhouse_engine::client_quotas::ClientLimits;
use lockhouse_policies::Rate;

use super::config_toml::ConfigToml;
use super::error::ConfigError;
use super::file_permissions::refuse_untrusted;
use super::http_tables::Http;
use super::oauth_settings;
use super::placeholders::Environment;
use super::tables::Clients;

pub(super) fn access_settings(
    document: &ConfigToml,
    configuration: &Path,
    environment: &Environment,
) -> Result<AuthSettings, ConfigError> {
    let http = &document.http;
    let config_error = |reason: String| ConfigError::Unusable { path: configuration.to_owned(), reason };
    let oauth =
        http.oauth.as_ref().map(|oauth| oauth_settings::oauth_settings(oauth, configuration, environment));
    let oauth = oauth.transpose();
    let oauth = oauth.map_err(|fault| ConfigError::Oauth { path: configuration.to_owned(), fault })?;
    if http.auth.has(AuthMethod::Oauth) && oauth.is_none() {
        return Err(config_error(
            "auth = \"oauth\" needs [http.oauth] with issuer, audience and scopes".into(),
        ));
    }
    // Who can write the keys can sign a token of any client.
    if let Some(KeySource::File(keys)) = oauth.as_ref().map(|oauth| &oauth.keys) {
        refuse_untrusted(keys, &environment.owners)?;
    }
    let users = AllowedUsers::resolve(http.users.as_deref());
    let users =
        users.map_err(|source| ConfigError::AllowedUsers { path: configuration.to_owned(), source })?;
    Ok(AuthSettings {
        mode: http.auth.clone(),
        tokens: token_file(http, configuration, environment),
        oauth,
        users,
    })
}

pub(super) fn token_file(http: &Http, configuration: &Path, environment: &Environment) -> Option<TokenFile> {
    let beside = configuration.parent().unwrap_or(Path::new(""));
    let named =
        http.tokens.as_ref().map(|path| beside.join(environment.expand_home(&path.to_string_lossy())));
    named
        .or_else(|| Some(lockhouse_base::directories::state()?.join("client-tokens.json")))
        .map(TokenFile::at)
}

pub(super) fn client_limits(table: &Clients) -> ClientLimits {
    // Invalid rates were rejected when the file was read.
    let closed = Rate::new(1, Duration::from_hours(1), 1);
    let rate = |text: &str| Rate::parse(text).unwrap_or(closed);
    ClientLimits {
        requests: rate(&table.requests),
        runs: rate(&table.runs),
        running: table.running as usize,
        waiting: table.waiting as usize,
        sessions: table.sessions as usize,
    }
}
