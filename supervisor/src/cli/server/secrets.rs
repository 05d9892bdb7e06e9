//! The files in which secrets of a server are kept, as its table refers to them.

use std::path::{Path, PathBuf};

use toml_edit::{Item, TableLike, Value};

use crate::config;

/// Those that were written for it by us. Other files that it refers to are not ours.
pub(super) fn secrets(server: &dyn TableLike) -> Vec<PathBuf> {
    let Some(directory) = config::secrets_directory() else { return Vec::new() };
    let mut texts = Vec::new();
    server.iter().for_each(|(_, item)| texts_of(item, &mut texts));
    let after = texts.iter().flat_map(|text| text.split("${file:").skip(1));
    let files = after.filter_map(|after| after.split_once('}')).map(|(path, _)| Path::new(path));
    files.filter(|file| file.parent() == Some(&*directory)).map(Path::to_owned).collect()
}

/// Every string, wherever it stands.
fn texts_of<'i>(item: &'i Item, texts: &mut Vec<&'i str>) {
    texts.extend(item.as_str());
    if let Some(array) = item.as_array() {
        texts.extend(array.iter().filter_map(Value::as_str));
    }
    if let Some(table) = item.as_table_like() {
        table.iter().for_each(|(_, item)| texts_of(item, texts));
    }
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
