//! Adds the servers that Lockhouse takes over to its configuration.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use lockhouse_audit::digest::sha256_hex;
use lockhouse_base::text_files::read_source;
use lockhouse_config::{ConfigEdit, ConfigError, Files};

use super::decisions::Decisions;
use super::journal::{Change, Journal, Secret};
use crate::cli::import::write_tables;
use crate::cli::terminal::sanitize;

/// Writes the servers into the configuration file, and their secrets into files. If the configuration cannot be
/// written, the files with secrets are removed again.
pub(super) fn write(
    files: &Files,
    edit: ConfigEdit,
    decisions: &Decisions<'_>,
    journal: &mut Journal,
) -> Result<(), ConfigError> {
    if decisions.servers.is_empty() {
        return Ok(());
    }
    let mut secrets = Vec::new();
    let written = write_recorded(files, edit, decisions, journal, &mut secrets);
    if written.is_err() {
        secrets.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
    written
}

fn write_recorded(
    files: &Files,
    mut edit: ConfigEdit,
    decisions: &Decisions<'_>,
    journal: &mut Journal,
    secrets: &mut Vec<PathBuf>,
) -> Result<(), ConfigError> {
    let path = edit.path().to_owned();
    let before = if path.exists() { Some(read_source(&path)?.text) } else { None };
    let servers: Vec<_> = decisions.servers.iter().map(|server| (server.name(), &server.entry)).collect();
    write_tables(&mut edit, &servers, secrets)?;
    edit.share_engine_if_new();
    let mut recorded = Vec::new();
    for path in secrets.iter() {
        recorded.push(Secret { path: path.clone(), sha256: sha256_hex(&read_source(path)?.text) });
    }
    let names = decisions.servers.iter().map(|server| server.name().to_string()).collect();
    let change = Change::Configuration { servers: names, secrets: recorded };
    let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
    journal.record(&path, before.as_deref(), &edit.text(), change).map_err(unwritable)?;
    edit.save(files)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(unwritable)?;
    println!("wrote {}", sanitize(&path.display().to_string()));
    Ok(())
}
