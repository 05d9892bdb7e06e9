//! The files in which secrets of a server are kept, as its table refers to them.

use std::path::{Path, PathBuf};

use toml_edit::TableLike;

use crate::config;

/// Those that were written for it by us. Other files that it refers to are not ours.
pub(super) fn secrets(server: &dyn TableLike) -> Vec<PathBuf> {
    let Some(directory) = config::secrets_directory() else { return Vec::new() };
    let tables = ["env", "headers"].into_iter().filter_map(|table| server.get(table)?.as_table_like());
    let texts = tables.flat_map(|table| table.iter().filter_map(|(_, text)| text.as_str()));
    let files = texts.filter_map(|text| Some(Path::new(text.strip_prefix("${file:")?.strip_suffix('}')?)));
    files.filter(|file| file.parent() == Some(&*directory)).map(Path::to_owned).collect()
}

/// Removes those that the configuration no longer refers to.
pub(super) fn remove_unused(secrets: &[PathBuf], configuration: &str) {
    for secret in secrets.iter().filter(|secret| !configuration.contains(&*secret.to_string_lossy())) {
        match std::fs::remove_file(secret) {
            Ok(()) => println!("removed the secret {}", secret.display()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => eprintln!("lockhouse: cannot remove the secret {}: {error}", secret.display()),
        }
    }
}
