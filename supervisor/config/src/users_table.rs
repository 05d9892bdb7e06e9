//! The table `[users]`, and which servers with `auth = "per_user"` can be used with it.

use std::collections::BTreeMap;

use lockhouse_base::directories;
use lockhouse_base::sealing_key::{Purpose, SealingKey, SealingKeyError};
use lockhouse_base::url_protection::is_protected;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{
    Authorization, Endpoint, ExchangeSettings, ServerDefinition, UserCredential, UserCredentials,
};
use url::Url;

use super::dialects::{own_template, secret_template};
use super::placeholders::{Environment, PlaceholderError};
use super::skipped_server::SkippedServer;
use super::tables::Users;

/// Why a server with `auth = "per_user"` is not used.
#[derive(Debug, thiserror::Error)]
enum UsersFault {
    #[error(
        "auth: set key of [users], which encrypts the credentials of users: \"${{cred:NAME}}\" or \"${{keyring:SERVICE/USER}}\""
    )]
    NoKey,
    #[error("[users]: key: expected one placeholder, \"${{cred:NAME}}\" or \"${{keyring:SERVICE/USER}}\"")]
    KeyPlaceholder,
    #[error("[users]: key: {0}")]
    Unresolved(#[from] PlaceholderError),
    #[error("[users]: key: {0}")]
    Unusable(#[from] SealingKeyError),
    #[error("[users]: url: expected an https URL, or an http URL of a loopback address")]
    Address,
    #[error("[users]: set HOME, XDG_STATE_HOME or STATE_DIRECTORY: nothing can be stored")]
    NoPlace,
    #[error("auth: a program or a server with fixed credentials needs user_secret with it")]
    NoSecret,
    #[error("auth: expected a command, or an http or https URL, with it")]
    Socket,
    #[error("exchange: set exchange_url and exchange_client of [users]")]
    NoExchange,
    #[error("[users]: exchange_url: expected an https URL, or an http URL of a loopback address")]
    ExchangeAddress,
    #[error("[users]: exchange_secret: expected a placeholder, such as \"${{cred:NAME}}\"")]
    ExchangeSecret,
    #[error("auth: expected expose = \"code\" with it")]
    Exposure,
}

/// Returns the store for the credentials of users. `None` if no server needs it, or it cannot be used: then those servers are moved
/// from `servers` to `skipped`.
pub(super) fn user_credentials(
    table: &Users,
    environment: &Environment,
    servers: &mut BTreeMap<ServerName, ServerDefinition>,
    skipped: &mut Vec<SkippedServer>,
) -> Option<UserCredentials> {
    if servers.values().all(|definition| definition.user_credential.is_none()) {
        return None;
    }
    let users = store(table, environment);
    servers.retain(|name, definition| {
        let Some(credential) = &definition.user_credential else { return true };
        let fault = users.as_ref().err().map(ToString::to_string);
        let exchange = users.as_ref().ok().and_then(UserCredentials::exchange);
        let fault = fault.or_else(|| {
            check(definition, credential, exchange.is_some()).err().map(|fault| fault.to_string())
        });
        let Some(reason) = fault else { return true };
        let origin = definition.origin.clone();
        skipped.push(SkippedServer { name: name.to_string(), origin, reason, disabled: false });
        false
    });
    users.ok()
}

fn store(table: &Users, environment: &Environment) -> Result<UserCredentials, UsersFault> {
    let text = table.key.as_ref().ok_or(UsersFault::NoKey)?;
    let template = own_template(text, environment).filter(|template| template.is_sealed_secret());
    let secret = template.ok_or(UsersFault::KeyPlaceholder)?.resolve(environment)?;
    let key = SealingKey::derive(&secret, Purpose::UserCredentials)?;
    let url = table.url.as_deref().map(|url| service_url(url).ok_or(UsersFault::Address)).transpose()?;
    let state = directories::state().ok_or(UsersFault::NoPlace)?;
    Ok(UserCredentials::new(&state, key, url).with_exchange(exchange(table, environment)?))
}

/// Returns where tokens of users are exchanged. `None` if the table names no identity provider.
fn exchange(table: &Users, environment: &Environment) -> Result<Option<ExchangeSettings>, UsersFault> {
    let Some(address) = &table.exchange_url else { return Ok(None) };
    let url = Url::parse(address).ok().filter(is_protected).ok_or(UsersFault::ExchangeAddress)?;
    let client_id = table.exchange_client.clone().ok_or(UsersFault::NoExchange)?;
    let secret = |text: &String| {
        let template = secret_template(text, environment);
        Ok::<_, UsersFault>(template.ok_or(UsersFault::ExchangeSecret)?.resolve(environment)?)
    };
    let client_secret = table.exchange_secret.as_ref().map(secret).transpose()?;
    // The names of RFC 8693.
    let subject_type = format!("urn:ietf:params:oauth:token-type:{}", table.exchange_subject);
    Ok(Some(ExchangeSettings { url, client_id, client_secret, subject_type }))
}

/// Returns the URL of the service for browsers, which ends in `/`. `None` if it cannot be one.
fn service_url(text: &str) -> Option<Url> {
    let url = Url::parse(&format!("{}/", text.trim_end_matches('/'))).ok()?;
    (is_protected(&url) && url.query().is_none() && url.fragment().is_none()).then_some(url)
}

fn check(
    definition: &ServerDefinition,
    credential: &UserCredential,
    has_exchange: bool,
) -> Result<(), UsersFault> {
    if definition.exposure.direct.is_some() {
        return Err(UsersFault::Exposure);
    }
    match (&definition.endpoint, credential) {
        (Endpoint::Socket(_), _) => Err(UsersFault::Socket),
        (_, UserCredential::Secret(_)) => Ok(()),
        (_, UserCredential::Exchange(_)) if !has_exchange => Err(UsersFault::NoExchange),
        (Endpoint::Http(endpoint), UserCredential::Login | UserCredential::Exchange(_)) => {
            match &endpoint.authorization {
                Authorization::OnDemand | Authorization::OAuth(_) => Ok(()),
                Authorization::Bearer(_) | Authorization::ClientCredentials(_) => Err(UsersFault::NoSecret),
            }
        }
        (Endpoint::Stdio(_), UserCredential::Login | UserCredential::Exchange(_)) => {
            Err(UsersFault::NoSecret)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_for_browsers_is_protected_or_of_this_host() {
        for (text, url) in [
            ("https://lockhouse.example.com", Some("https://lockhouse.example.com/")),
            ("https://example.com/lockhouse/", Some("https://example.com/lockhouse/")),
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080/")),
            ("http://lockhouse.example.com", None),
            ("https://example.com/?a", None),
            ("javascript:alert(1)", None),
            ("", None),
        ] {
            assert_eq!(service_url(text).as_ref().map(Url::as_str), url, "{text}");
        }
    }

    #[test]
    fn a_key_in_the_file_itself_is_refused() {
        let refused = |key: Option<&str>| {
            let table = Users { key: key.map(str::to_owned), ..Users::default() };
            store(&table, &Environment::default()).map(drop).map_err(|fault| fault.to_string())
        };
        for key in ["0123456789abcdef0123456789abcdef", "${env:KEY}", "${file:/key}", "a${cred:key}"] {
            assert!(
                refused(Some(key)).is_err_and(|fault| fault.contains("expected one placeholder")),
                "{key}"
            );
        }
        assert!(refused(None).is_err_and(|fault| fault.starts_with("auth: set key of [users]")));
        assert!(refused(Some("${cred:key}")).is_err_and(|fault| fault.contains("there is no credential")));
    }
}
