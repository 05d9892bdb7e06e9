//! Finds and removes the files that hold the secrets of an upstream server.

use std::path::{Path, PathBuf};

use lockhouse_config as config;
use toml_edit::{Item, TableLike, Value};

/// Returns the secret files that Lockhouse wrote for a server: those that placeholders in the server's configuration
/// table name and that are in the directory for secrets. Other files that the table names are not included.
pub(super) fn secret_files(server: &dyn TableLike) -> Vec<PathBuf> {
    let Some(directory) = config::secrets_directory() else { return Vec::new() };
    let mut texts = Vec::new();
    server.iter().for_each(|(_, item)| collect_strings(item, &mut texts));
    let after = texts.iter().flat_map(|text| text.split("${file:").skip(1));
    let files = after.filter_map(|after| after.split_once('}')).map(|(path, _)| Path::new(path));
    files.filter(|file| file.parent() == Some(&*directory)).map(Path::to_owned).collect()
}

/// Appends the strings in a TOML item to `texts`: the item itself, the elements of an array, and recursively the
/// items of a table.
fn collect_strings<'i>(item: &'i Item, texts: &mut Vec<&'i str>) {
    texts.extend(item.as_str());
    if let Some(array) = item.as_array() {
        texts.extend(array.iter().filter_map(Value::as_str));
    }
    if let Some(table) = item.as_table_like() {
        table.iter().for_each(|(_, item)| collect_strings(item, texts));
    }
}

/// Removes the secret files among `secrets` that the text of the configuration no longer refers to.
pub(super) fn remove_unused(secrets: &[PathBuf], configuration: &str) {
    for secret in secrets.iter().filter(|secret| !configuration.contains(&*secret.to_string_lossy())) {
        match std::fs::remove_file(secret) {
            Ok(()) => println!("removed the secret {}", secret.display()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => eprintln!("lockhouse: cannot remove the secret {}: {error}", secret.display()),
        }
    }
}
