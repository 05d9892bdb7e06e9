//! Converts the configuration tables `[http]` and `[clients]` into authentication settings and limits per AI client.

use std::path::Path;
use std::time::Duration;

use lockhouse_access::{AllowedUsers, AuthMethod, AuthSettings, CertificateSettings, KeySource, TokenFile};
use lockhouse_engine::client_quotas::ClientLimits;
use lockhouse_front::http::TlsVersion;
use lockhouse_policies::Rate;

use super::config_toml::ConfigToml;
use super::error::ConfigError;
use super::file_permissions::refuse_untrusted;
use super::http_tables::{Http, file};
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
    let takes_certificates = http.client_certificates.bound_tokens;
    let oauth = http
        .oauth
        .as_ref()
        .map(|oauth| oauth_settings::oauth_settings(oauth, takes_certificates, configuration, environment));
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
    let certificates = certificate_settings(http, configuration, environment)?;
    let users = AllowedUsers::resolve(http.users.as_deref());
    let users =
        users.map_err(|source| ConfigError::AllowedUsers { path: configuration.to_owned(), source })?;
    Ok(AuthSettings {
        mode: http.auth.clone(),
        tokens: token_file(http, configuration, environment),
        oauth,
        certificates,
        users,
    })
}

/// Returns the settings of client certificates. `None` if they authenticate nobody.
fn certificate_settings(
    http: &Http,
    configuration: &Path,
    environment: &Environment,
) -> Result<Option<CertificateSettings>, ConfigError> {
    if let Some(fault) = certificate_fault(http) {
        return Err(ConfigError::Unusable { path: configuration.to_owned(), reason: fault.to_owned() });
    }
    let table = &http.client_certificates;
    let Some(authorities) = table.authorities.as_ref().filter(|_| http.auth.has(AuthMethod::Certificate))
    else {
        return Ok(None);
    };
    let file = |written: &String| file(written, configuration, environment);
    let (authorities, revoked) = (file(authorities), table.revoked.as_ref().map(file));
    // Who can write them can authenticate as any client.
    for path in std::iter::once(&authorities).chain(&revoked) {
        refuse_untrusted(path, &environment.owners)?;
    }
    Ok(Some(CertificateSettings { authorities, revoked, name: table.name }))
}

/// Returns what makes the settings of client certificates unusable.
fn certificate_fault(http: &Http) -> Option<&'static str> {
    let (table, has_tls) = (&http.client_certificates, http.tls.is_some());
    let authenticates = http.auth.has(AuthMethod::Certificate);
    let faults = [
        (
            authenticates && table.authorities.is_none(),
            "auth = \"certificate\" needs authorities in [http.client_certificates]",
        ),
        (
            authenticates && !has_tls,
            "auth = \"certificate\" needs [http.tls]: a certificate that a proxy passes on comes without its client's signature",
        ),
        (
            table.bound_tokens && !http.auth.has(AuthMethod::Oauth),
            "bound_tokens of [http.client_certificates] needs auth = \"oauth\", alone or in a list",
        ),
        (
            table.from_proxies && (!table.bound_tokens || http.trusted_proxies.is_empty()),
            "from_proxies of [http.client_certificates] needs bound_tokens = true there, and trusted_proxies of [http]",
        ),
        (
            table.bound_tokens && !has_tls && !table.from_proxies,
            "bound_tokens of [http.client_certificates] needs [http.tls], or from_proxies = true if a proxy terminates TLS",
        ),
        (
            (authenticates || table.bound_tokens) && http.tls_minimum == TlsVersion::Tls12,
            "[http.client_certificates] needs tls_minimum = \"1.3\"",
        ),
    ];
    faults.into_iter().find_map(|(is_there, fault)| is_there.then_some(fault))
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
