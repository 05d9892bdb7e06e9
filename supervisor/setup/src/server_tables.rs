//! Writes servers of AI clients into Lockhouse's configuration, and their secrets into files.

use std::path::PathBuf;

use lockhouse_config::{
    ConfigEdit, ConfigError, ServerEntry, looks_secret, secrets_directory, store_secret, to_server_table,
};
use lockhouse_protocol::ServerName;

/// Adds the imported servers to the edited configuration, and writes their secrets to files, whose paths are appended
/// to `kept`.
pub fn write_tables(
    edit: &mut ConfigEdit,
    servers: &[(&ServerName, &ServerEntry)],
    kept: &mut Vec<PathBuf>,
) -> Result<(), ConfigError> {
    let directory = secrets_directory().ok_or(ConfigError::NoConfigDirectory)?;
    for (name, entry) in servers {
        let mut failed = None;
        let table = to_server_table(entry, &mut |key, value| {
            if !is_secret(key, value) || failed.is_some() {
                return None;
            }
            match store_secret(&directory, name.as_str(), key, value) {
                Ok(path) => {
                    let reference = format!("${{file:{}}}", path.display());
                    kept.push(path);
                    Some(reference)
                }
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        });
        if let Some(source) = failed {
            return Err(ConfigError::Unwritable { path: directory, source });
        }
        edit.set_server(name.as_str(), table);
    }
    Ok(())
}

/// Whether a value of an imported server's configuration is a secret, as its key (such as a variable or header name) or
/// its form suggests. A secret is moved to a file of its own instead of being written to the configuration.
fn is_secret(key: &str, value: &str) -> bool {
    let always = matches!(key, "client_secret" | "bearer_token");
    (always && !value.is_empty()) || looks_secret(key, value)
}

/// Returns the names of the secret values in a server entry, such as variable and header names. A secret argument
/// without a name is listed as "an argument".
pub fn secret_names(entry: &ServerEntry) -> Vec<String> {
    let mut names = Vec::new();
    to_server_table(entry, &mut |key, value| {
        if is_secret(key, value) {
            names.push(if key.is_empty() { "an argument".to_owned() } else { key.to_owned() });
        }
        None
    });
    names
}
