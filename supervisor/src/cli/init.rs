//! `lockhouse init`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use lockhouse_base::text_files::{back_up, read_source, replace};
use lockhouse_policies::Source;
use similar::{ChangeTag, TextDiff};

use super::consent::Consent;
use super::terminal::harmless;
use super::{UNAVAILABLE, USAGE, complain, complain_config};
use crate::config::{self, Client, ConfigError, Files, Insertion, StartEntry, Surroundings, insert};

/// Which AI client to point at Lockhouse.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The AI client; every one that has a file by default
    #[arg(long, value_enum)]
    client: Option<Client>,
    #[command(flatten)]
    consent: Consent,
}

/// One file that is to change.
struct Change {
    client: Client,
    path: PathBuf,
    insertion: Insertion,
}

/// Shows the entry for each client, and writes it.
pub(super) fn init(files: &Files, arguments: &Arguments) -> ExitCode {
    let surroundings = Surroundings::of_process();
    let start = match start(files) {
        Ok(start) => start,
        Err(error) => return complain(&error, UNAVAILABLE),
    };
    let targets = targets(arguments.client, &surroundings);
    if targets.is_empty() {
        eprintln!(
            "lockhouse: no AI client's file was found; name the client with --client, and its file is made"
        );
        return ExitCode::from(USAGE);
    }
    let (mut changes, mut status) = (Vec::new(), ExitCode::SUCCESS);
    for (client, path) in targets {
        match change(client, &path, &start, &surroundings) {
            Ok(Some(insertion)) => changes.push(Change { client, path, insertion }),
            Ok(None) => println!("{} points at Lockhouse already: {}", client.name(), shown(&path)),
            Err(error) => status = complain_config(&error),
        }
    }
    for change in &changes {
        show(change);
    }
    if changes.is_empty() || !arguments.consent.given("Write this?") {
        return status;
    }
    for change in &changes {
        if let Err(source) = write(change) {
            let error = ConfigError::Unwritable { path: change.path.clone(), source };
            status = complain(&error, UNAVAILABLE);
        }
    }
    println!(
        "start the AI client again to connect it; its own entries for servers that Lockhouse has (`lockhouse import`) can go"
    );
    status
}

/// This program, with the files that were named now.
fn start(files: &Files) -> std::io::Result<StartEntry> {
    let program = std::env::current_exe()?;
    let mut arguments = vec!["serve".to_owned()];
    let named = [
        ("--config", files.config.as_slice()),
        ("--policy", files.policy.as_slice()),
        ("--servers", &files.servers),
    ];
    for (option, path) in
        named.into_iter().flat_map(|(option, paths)| paths.iter().map(move |path| (option, path)))
    {
        arguments.extend([option.to_owned(), std::path::absolute(path)?.display().to_string()]);
    }
    Ok(StartEntry { program, arguments })
}

/// The client's file, or where it would be; of all clients those that have one.
fn targets(client: Option<Client>, surroundings: &Surroundings) -> Vec<(Client, PathBuf)> {
    let file = |client: Client| {
        let first = client.files(surroundings).into_iter().next();
        // VS Code's settings only hold servers of old.
        let found = client.found(surroundings).into_iter().next();
        Some((client, if client == Client::Vscode { first } else { found.or(first) }?))
    };
    match client {
        Some(client) => file(client).into_iter().collect(),
        None => {
            let existing =
                Client::value_variants().iter().filter(|client| !client.found(surroundings).is_empty());
            existing.filter_map(|client| file(*client)).collect()
        }
    }
}

fn change(
    client: Client,
    path: &std::path::Path,
    start: &StartEntry,
    surroundings: &Surroundings,
) -> Result<Option<Insertion>, ConfigError> {
    let source = match path.exists() {
        true => read_source(path)?,
        false => Source { path: path.display().to_string(), text: String::new() },
    };
    if config::points_at_us(&source, surroundings) {
        return Ok(None);
    }
    Ok(insert(client, &source, start)?)
}

fn shown(path: &std::path::Path) -> String {
    harmless(&path.display().to_string())
}

/// The lines of our entry alone: those around it may hold secrets.
fn show(change: &Change) {
    println!("{}: {}, below {}", change.client.name(), shown(&change.path), change.insertion.section);
    for line in TextDiff::from_lines(&change.insertion.before, &change.insertion.after).iter_all_changes() {
        let sign = match line.tag() {
            ChangeTag::Delete => "-",
            ChangeTag::Insert => "+",
            ChangeTag::Equal => " ",
        };
        println!("{sign} {}", harmless(line.value().trim_end_matches(['\r', '\n'])));
    }
    println!();
}

fn write(change: &Change) -> std::io::Result<()> {
    // A link stays one: what it points at is changed.
    let path = std::fs::canonicalize(&change.path).unwrap_or_else(|_| change.path.clone());
    let backup = if path.is_file() { Some(back_up(&path)?) } else { None };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    replace(&path, &change.insertion.text)?;
    println!("wrote {}", shown(&change.path));
    let section = &change.insertion.section;
    match backup {
        Some(backup) => println!(
            "  to take it out again: remove \"lockhouse\" below {section}, or put {} in its place",
            shown(&backup)
        ),
        None => println!("  to take it out again: remove \"lockhouse\" below {section}"),
    }
    Ok(())
}
