//! Converts the configuration table `[cluster]`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use lockhouse_base::host_name::host_name;
use lockhouse_base::sealing_key::{Purpose, SealingKey, SealingKeys};
use lockhouse_cluster::{ClusterSettings, HostName, StateAddress, StateConnection};

use super::config_toml::ConfigToml;
use super::dialects::secret_template;
use super::error::ConfigError;
use super::http_tables::file;
use super::placeholders::Environment;
use super::tables::ClusterTable;
use super::value_settings::{value_place, value_settings};

/// Name of the file with the key of this host, in the directory of the state.
const KEY_FILE: &str = "cluster-key";

/// Returns how this host takes part in a cluster, without its secret. `None` if it does not.
///
/// # Errors
/// [`ConfigError::Unusable`] for the first key that cannot be used.
pub(super) fn cluster_settings(
    document: &ConfigToml,
    configuration: &Path,
    environment: &Environment,
) -> Result<Option<ClusterSettings>, ConfigError> {
    let table = &document.cluster;
    if table.nats.is_empty() {
        return Ok(None);
    }
    let unusable = |reason: String| ConfigError::Unusable { path: configuration.to_owned(), reason };
    if document.http.auth.is_none() {
        return Err(unusable("[cluster] needs clients that authenticate: auth of [http]".to_owned()));
    }
    if table.audit_copies && document.audit.sink.is_some() {
        let reason = "with a sink, this process cannot read the audit log; use forward of [audit]";
        return Err(unusable(format!("audit_copies of [cluster]: {reason}")));
    }
    value_place(table).map_err(unusable)?;
    let key_file = lockhouse_base::directories::state().ok_or(ConfigError::NoStateDirectory)?.join(KEY_FILE);
    let authorities = table.nats_ca.as_ref().map(|path| file(path, configuration, environment));
    settings(table, key_file, authorities).map(Some).map_err(unusable)
}

fn settings(
    table: &ClusterTable,
    key_file: PathBuf,
    authorities: Option<PathBuf>,
) -> Result<ClusterSettings, String> {
    let servers = table
        .nats
        .iter()
        .map(|text| text.parse::<StateAddress>().map_err(|fault| format!("nats of [cluster]: {fault}")));
    let servers: Vec<StateAddress> = servers.collect::<Result<_, _>>()?;
    if servers.iter().any(|server| server.uses_tls() != servers[0].uses_tls()) {
        return Err("nats of [cluster]: use TLS for all servers, or for none".to_owned());
    }
    let name = table.name.clone().or_else(machine_name).unwrap_or_default();
    let name = name.parse::<HostName>().map_err(|fault| format!("name of [cluster]: {fault}"))?;
    let listen = table.listen.as_ref().ok_or("listen of [cluster] is needed: IP:PORT")?;
    let listen = address(listen, "listen")?;
    let address = table.address.as_ref().map(|text| address(text, "address")).transpose()?;
    if listen.port() == 0
        || address.is_some_and(|address| address.ip().is_unspecified() || address.port() == 0)
    {
        return Err(
            "listen and address of [cluster] need a port, and address an address that the others reach"
                .to_owned(),
        );
    }
    let replicas = table.replicas as usize;
    let connection = StateConnection { name, servers, nkey: None, authorities };
    let (shared_key, values, copies_audit) = (None, None, table.audit_copies);
    Ok(ClusterSettings { connection, shared_key, values, copies_audit, replicas, listen, address, key_file })
}

/// Returns the name of this machine without its domain, in small letters.
fn machine_name() -> Option<String> {
    host_name()?.split('.').next().map(str::to_lowercase)
}

fn address(text: &str, key: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{key} of [cluster]: expected IP:PORT"))
}

/// Adds the secrets.
///
/// # Errors
/// [`ConfigError::Unusable`] if one of them is none, or cannot be read.
pub(super) fn with_secrets(
    settings: ClusterSettings,
    document: &ConfigToml,
    configuration: &Path,
    environment: &Environment,
) -> Result<ClusterSettings, ConfigError> {
    let unusable = |key: &str, reason: &dyn std::fmt::Display| ConfigError::Unusable {
        path: configuration.to_owned(),
        reason: format!("{key} of [cluster]: {reason}"),
    };
    let secret = |key: &str, written: &Option<String>| {
        let Some(written) = written else { return Ok(None) };
        let expected = "expected a placeholder, such as \"${cred:NAME}\"";
        let template = secret_template(written, environment).ok_or_else(|| unusable(key, &expected))?;
        template.resolve(environment).map(Some).map_err(|error| unusable(key, &error))
    };
    let nkey = secret("nkey", &document.cluster.nkey)?.map(|seed| seed.trim().to_owned());
    let shared_secret = secret("shared_key", &document.cluster.shared_key)?;
    let unusable_key = |error| unusable("shared_key", &error);
    let shared_key = shared_secret.as_ref().map(|secret| SealingKey::derive(secret, Purpose::SharedItems));
    let shared_key = shared_key.transpose().map_err(unusable_key)?;
    let sealing = shared_secret.as_ref().map(|secret| SealingKeys::derive(secret, Purpose::ValueCopies));
    let sealing = sealing.transpose().map_err(unusable_key)?;
    let values = value_settings(&document.cluster, sealing, environment);
    let values = values.map_err(|reason| ConfigError::Unusable { path: configuration.to_owned(), reason })?;
    let connection = StateConnection { nkey, ..settings.connection };
    Ok(ClusterSettings { connection, shared_key, values, ..settings })
}
