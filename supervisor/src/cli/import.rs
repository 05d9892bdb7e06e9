//! `lockhouse import`

mod candidate;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use lockhouse_base::text_files::back_up;

use super::consent::Consent;
use super::terminal::harmless;
use super::{complain_config, table};
use crate::config::{
    self, Client, ConfigError, Edit, Entry, Files, Settings, Surroundings, keep, looks_secret, own_table,
};
use candidate::{Candidate, Judge};

/// What to import.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// An AI client, such as claude-code or cursor, or a file; every client's own files by default
    #[arg(long, value_name = "CLIENT|FILE")]
    from: Option<String>,
    #[command(flatten)]
    consent: Consent,
}

/// A file, and whose it is, unless only its dialect can say so.
struct Listed {
    client: Option<Client>,
    path: PathBuf,
}

/// Shows what would be taken, and takes it.
pub(super) fn import(files: &Files, arguments: &Arguments) -> ExitCode {
    match try_import(files, arguments) {
        Ok(status) => status,
        Err(error) => complain_config(&error),
    }
}

fn try_import(files: &Files, arguments: &Arguments) -> Result<ExitCode, ConfigError> {
    let surroundings = Surroundings::of_process();
    let sources = sources(arguments.from.as_deref(), &surroundings);
    let settings = Settings::load(files)?;
    let edit = Edit::open(files)?;
    let mut judge = Judge::new(&settings.engine.servers, &edit, &surroundings);
    let mut candidates = Vec::new();
    for source in &sources {
        match config::list_servers(&source.path, &surroundings) {
            Ok(Some(listing)) => {
                let client = source.client.map_or(listing.dialect.name(), Client::name);
                let listed = listing.servers.into_iter();
                candidates.extend(listed.map(|listed| judge.candidate(client, &source.path, listed)));
            }
            Ok(None) => {}
            // The others can be read.
            Err(error) if arguments.from.is_none() => drop(complain_config(&error)),
            Err(error) => return Err(error),
        }
    }
    show(&candidates, &sources, arguments.from.is_some(), &surroundings);
    let taken: Vec<&Candidate> = candidates.iter().filter(|found| found.taken().is_some()).collect();
    if taken.is_empty() {
        println!("there is nothing to take");
        return Ok(ExitCode::SUCCESS);
    }
    let servers = if taken.len() == 1 { "1 server".to_owned() } else { format!("{} servers", taken.len()) };
    let question = format!("Write {servers} into {}?", edit.path().display());
    if !arguments.consent.given(&question) {
        return Ok(ExitCode::SUCCESS);
    }
    let path = edit.path().to_owned();
    let backup = write(files, edit, &taken)?;
    println!("wrote {servers} into {}", path.display());
    if let Some(backup) = backup {
        println!("what it was is in {}", backup.display());
    }
    warn_of_copies(&taken);
    println!(
        "nothing is allowed by that: `lockhouse policy init` writes a policy from what the servers offer"
    );
    println!(
        "`lockhouse init` points your AI clients at Lockhouse; the entries that were taken can then go from their files"
    );
    Ok(ExitCode::SUCCESS)
}

/// The secrets of what was taken are still where they were found.
fn warn_of_copies(taken: &[&Candidate]) {
    let mut files: Vec<&Path> = Vec::new();
    for candidate in taken {
        let names = candidate.taken().map(|(_, entry)| secrets(entry)).unwrap_or_default();
        if names.is_empty() {
            continue;
        }
        let (place, server) = (format!("{}:{}", candidate.path.display(), candidate.line), &candidate.name);
        eprintln!(
            "lockhouse: warning: {} still has in the clear, of server {}: {}. Take the server out of that file once it works here",
            harmless(&place),
            harmless(server),
            harmless(&names.join(", "))
        );
        if !files.contains(&candidate.path.as_path()) {
            files.push(&candidate.path);
        }
    }
    for secret in config::readable_by_others(files.into_iter()) {
        eprintln!("lockhouse: warning: {}", harmless(&secret.to_string()));
    }
}

fn sources(from: Option<&str>, surroundings: &Surroundings) -> Vec<Listed> {
    let of = |client: Client| {
        let found = client.found(surroundings).into_iter();
        found.map(move |path| Listed { client: Some(client), path }).collect::<Vec<_>>()
    };
    match from {
        None => Client::value_variants().iter().flat_map(|client| of(*client)).collect(),
        Some(name) => match Client::from_str(name, true) {
            Ok(client) => of(client),
            Err(_) => vec![Listed { client: None, path: surroundings.expand_home(name) }],
        },
    }
}

fn show(candidates: &[Candidate], sources: &[Listed], is_chosen: bool, surroundings: &Surroundings) {
    let short = |path: &Path| {
        let below = surroundings.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        below.map_or(path.display().to_string(), |below| format!("~/{}", below.display()))
    };
    let row = |found: &Candidate| {
        let place = format!("{}:{}", short(&found.path), found.line);
        vec![found.client.clone(), place, found.name.clone(), found.reach.clone(), found.told()]
    };
    let rows: Vec<Vec<String>> = candidates.iter().map(row).collect();
    if rows.is_empty() {
        let places: Vec<String> = sources.iter().map(|source| short(&source.path)).collect();
        let places = if places.is_empty() {
            "no AI client's file was found".into()
        } else {
            format!("looked at {}", places.join(", "))
        };
        println!("no servers are configured there: {}", harmless(&places));
    } else {
        println!("{}", table::render(&["client", "place", "server", "reach", "outcome"], &rows));
    }
    let projects = if is_chosen { Vec::new() } else { config::project_files(surroundings) };
    for path in projects {
        let path = harmless(&short(&path));
        println!("not looked at, since it came with the project: {path}; take it with --from {path}");
    }
    println!();
}

/// Writes what is taken, and gives the place of the backup. If that fails, nothing of it stays behind.
fn write(files: &Files, mut edit: Edit, taken: &[&Candidate]) -> Result<Option<PathBuf>, ConfigError> {
    let path = edit.path().to_owned();
    let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
    let mut made = Vec::new();
    let written = write_tables(&mut edit, taken, &mut made).and_then(|()| {
        let backup = if path.is_file() { Some(back_up(&path).map_err(unwritable)?) } else { None };
        made.extend(backup.clone());
        edit.save(files)?;
        Ok(backup)
    });
    if written.is_err() {
        for path in made {
            let _ = std::fs::remove_file(path);
        }
    }
    let backup = written?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(unwritable)?;
    Ok(backup)
}

fn write_tables(edit: &mut Edit, taken: &[&Candidate], kept: &mut Vec<PathBuf>) -> Result<(), ConfigError> {
    let directory = config::secrets_directory().ok_or(ConfigError::NoConfigDirectory)?;
    for (name, entry) in taken.iter().filter_map(|candidate| candidate.taken()) {
        let mut failed = None;
        let table = own_table(entry, &mut |key, value| {
            if !is_secret(key, value) || failed.is_some() {
                return None;
            }
            match keep(&directory, name.as_str(), key, value) {
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

/// What our configuration does not hold in the clear.
fn is_secret(key: &str, value: &str) -> bool {
    let always = matches!(key, "client_secret" | "bearer_token");
    (always && !value.is_empty()) || looks_secret(key, value)
}

/// The names of an entry's secrets.
fn secrets(entry: &Entry) -> Vec<String> {
    let mut names = Vec::new();
    own_table(entry, &mut |key, value| {
        if is_secret(key, value) {
            names.push(if key.is_empty() { "an argument".to_owned() } else { key.to_owned() });
        }
        None
    });
    names
}
