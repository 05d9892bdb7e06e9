//! `lockhouse server add`

mod entry;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_catalog::python_name;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

use super::secrets::{remove_unused, secrets};
use crate::cli::terminal::harmless;
use crate::cli::{USAGE, complain, complain_config};
use crate::config::{self, ConfigError, Edit, Files, Settings};
use entry::{Entry, Target};

#[derive(Debug, clap::Args)]
#[command(override_usage = "lockhouse server add [OPTIONS] NAME -- COMMAND ARGS...
       lockhouse server add [OPTIONS] NAME URL")]
pub(in crate::cli) struct Arguments {
    /// A name of your choice: code imports the server by it
    name: String,
    /// URL of a server that is reached over HTTP
    #[arg(value_name = "URL")]
    target: Vec<String>,
    /// Program of a server that Lockhouse starts, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// stdio or http [default: http for a URL, else stdio]
    #[arg(short, long)]
    transport: Option<String>,
    /// Set a variable in the server's environment
    #[arg(short, long, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// Pass on a variable of the environment that Lockhouse is started with
    #[arg(long, value_name = "KEY")]
    env_from: Vec<String>,
    /// Send a header with every request
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Start it in this directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Replace a server of this name
    #[arg(long)]
    force: bool,
    /// Of other programs' grammar
    #[arg(short, long, hide = true)]
    scope: Option<String>,
}

pub(super) fn add(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let mut entry = Entry::new(arguments).map_err(|mistake| complain(&mistake, USAGE))?;
    // A configuration that is named and not there yet is made.
    let is_new = files.config.as_ref().is_some_and(|named| !named.exists());
    let servers = if is_new { BTreeMap::new() } else { super::load(files)?.engine.servers };
    let mut edit = Edit::open(files).map_err(|error| complain_config(&error))?;
    if let Some(conflict) = name_conflict(&entry.name, &edit, &servers, arguments.force) {
        return Err(complain(&conflict, USAGE));
    }
    let name = entry.name.to_string();
    let replaced = edit.server(&name).map(secrets).unwrap_or_default();
    let kept = keep_secrets(&mut entry, edit.path()).map_err(|error| complain_config(&error))?;
    let path = edit.path().to_owned();
    edit.set_server(&name, entry.to_table());
    let text = edit.text();
    if let Err(error) = edit.save(files) {
        forget(&kept);
        return Err(complain_config(&error));
    }
    println!("added {name} to {}", path.display());
    print_kept(&kept);
    remove_unused(&replaced, &text);
    warn(&entry);
    warn_if_unused(files, &name);
    print_next_steps(files, &name);
    Ok(ExitCode::SUCCESS)
}

/// There is another server of the name, or of one that code cannot tell from it.
#[derive(Debug, thiserror::Error)]
enum NameConflict {
    #[error("there is a server {other} already, from {origin}; take another name")]
    Elsewhere { other: ServerName, origin: String },
    #[error(
        "there is a server {other} already, from {origin}, which code would call the same; take another name"
    )]
    SameInCode { other: ServerName, origin: String },
    #[error(
        "there is a server {name} already in {path}; replace it with --force, or take it out with `lockhouse server remove {name}`"
    )]
    Here { name: ServerName, path: PathBuf },
}

/// Why the configuration cannot have the name, if it cannot.
fn name_conflict(
    name: &ServerName,
    edit: &Edit,
    servers: &BTreeMap<ServerName, ServerDefinition>,
    force: bool,
) -> Option<NameConflict> {
    if edit.server(name.as_str()).is_some() {
        return (!force).then(|| NameConflict::Here { name: name.clone(), path: edit.path().to_owned() });
    }
    let is_same = |other: &ServerName| python_name(other.as_str()) == python_name(name.as_str());
    let (other, server) = servers.iter().find(|(other, _)| is_same(other))?;
    let (other, origin) = (other.clone(), server.origin.clone());
    Some(match other == *name {
        true => NameConflict::Elsewhere { other, origin },
        false => NameConflict::SameInCode { other, origin },
    })
}

/// Says where secrets are now, and who may still see them.
fn print_kept(kept: &[Kept]) {
    for Kept { name, file, .. } in kept {
        println!(
            "the value of {name} looks like a secret: it is in {}, which only you can read, and the configuration refers to it",
            file.display()
        );
    }
    if kept.iter().any(|kept| kept.in_command_line) {
        eprintln!(
            "lockhouse: warning: while the server runs, others on this machine can see its arguments: if it takes the secret from a variable, add it with -e KEY=VALUE"
        );
    }
}

fn warn_if_unused(files: &Files, name: &str) {
    let unused = Settings::load(files).map(|settings| settings.unused).unwrap_or_default();
    if let Some(unused) = unused.iter().find(|unused| unused.name == name) {
        eprintln!("lockhouse: warning: it cannot be used now: {}", harmless(&unused.reason));
    }
}

fn print_next_steps(files: &Files, name: &str) {
    println!("next: try it with `lockhouse server test {name}`");
    match config::find_policy(files) {
        Some(policy) => println!(
            "code may call none of its tools until {} has a [servers.{name}] that allows them",
            policy.display()
        ),
        None => println!(
            "code may call none of its tools until a policy allows them: `lockhouse policy init` writes one"
        ),
    }
}

/// A value that was moved to a file.
struct Kept {
    name: String,
    file: PathBuf,
    /// Whether the server gets it as part of its command line.
    in_command_line: bool,
}

/// Moves what looks like a secret to files, and refers to those instead.
fn keep_secrets(entry: &mut Entry, config: &Path) -> Result<Vec<Kept>, ConfigError> {
    let directory = config::secrets_directory().unwrap_or_else(|| config.with_file_name("secrets"));
    let server = entry.name.to_string();
    let (mut kept, mut failed) = (Vec::new(), None);
    entry.refer(|name, value, in_command_line| {
        if failed.is_some() || !config::looks_secret(name, value) {
            return None;
        }
        let name = if name.is_empty() { "an argument" } else { name };
        match config::keep(&directory, &server, name, value) {
            Ok(file) => {
                let reference = format!("${{file:{}}}", file.display());
                kept.push(Kept { name: name.to_owned(), file, in_command_line });
                Some(reference)
            }
            Err(source) => {
                failed = Some(ConfigError::Unwritable { path: directory.clone(), source });
                None
            }
        }
    });
    match failed {
        None => Ok(kept),
        Some(error) => {
            forget(&kept);
            Err(error)
        }
    }
}

/// Of a server that was not added.
fn forget(kept: &[Kept]) {
    kept.iter().for_each(|kept| drop(std::fs::remove_file(&kept.file)));
}

/// Says what is likely to be a mistake, and may not be one.
fn warn(entry: &Entry) {
    let Target::Http { url, headers, .. } = &entry.target else { return };
    let loopback = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    };
    if url.scheme() == "http" && !loopback && !headers.is_empty() {
        let host = harmless(url.host_str().unwrap_or_default());
        eprintln!("lockhouse: warning: without https everyone on the way to {host} can read the headers");
    }
}

/// What clap cannot know of a mistake in a command line: `server add NAME npx -y PACKAGE`.
pub(in crate::cli) fn hint(error: &clap::Error, words: &[String]) -> Option<&'static str> {
    let position = words.windows(2).position(|words| words == ["server", "add"])?;
    let dashes = words[position..].iter().any(|word| word == "--");
    (error.kind() == clap::error::ErrorKind::UnknownArgument && !dashes).then_some(
        "an option of the server's own command comes after --: `lockhouse server add NAME -- COMMAND ARGS...`",
    )
}
