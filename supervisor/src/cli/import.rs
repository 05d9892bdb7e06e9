//! `lockhouse import`: adds the MCP servers of AI clients' configuration files to the configuration of Lockhouse.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_base::delegated_files::is_delegated;
use lockhouse_base::text_files::back_up;
use lockhouse_client_files::AiClient;
use lockhouse_config::{self as config, ConfigEdit, ConfigError, Environment, Files, ServerEntry, Settings};
use lockhouse_protocol::ServerName;
use lockhouse_setup::{Candidate, Importer, ServersFile, secret_names, servers_files, write_tables};
use lockhouse_upstream::ServerLimits;

use super::confirmation::{Confirmation, NoAnswer, ask_yes_no};
use super::sandbox_options::SandboxOptions;
use super::terminal::sanitize;
use super::{USAGE, line_width, print_config_error, print_error, recorded_config_edit, sandbox, table};

/// Options of `lockhouse import`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// An AI client, such as claude-code or cursor, or a file [default: the files of all known AI clients]
    #[arg(long, value_name = "CLIENT|FILE")]
    from: Option<String>,
    /// Do not connect to the imported servers now
    #[arg(long)]
    no_connect: bool,
    #[command(flatten)]
    sandbox: SandboxOptions,
    /// Import servers over HTTP+SSE too, a transport that MCP has deprecated [default: a question on a terminal,
    /// otherwise no]
    #[arg(long)]
    sse: bool,
    #[command(flatten)]
    confirmation: Confirmation,
}

/// Runs `lockhouse import`: shows the servers that would be imported, and imports them after confirmation.
pub(super) async fn import(files: &Files, arguments: &Arguments) -> ExitCode {
    match try_import(files, arguments).await {
        Ok(status) => status,
        Err(error) => print_config_error(&error),
    }
}

async fn try_import(files: &Files, arguments: &Arguments) -> Result<ExitCode, ConfigError> {
    let environment = Environment::from_process();
    let sources = servers_files(arguments.from.as_deref(), &environment);
    let settings = Settings::load(files)?;
    let edit = ConfigEdit::open(files)?;
    let mut importer = Importer::new(&settings.engine.servers, &edit, &environment);
    let candidates = find(&sources, arguments.from.is_none(), &mut importer, &environment)?;
    show(&candidates, &sources, arguments.from.is_some(), &environment);
    let mut imported: Vec<&Candidate> =
        candidates.iter().filter(|found| found.imported().is_some()).collect();
    let over_sse = imported.iter().copied().filter(|found| found.needs_confirmation());
    if !takes_over_sse(over_sse, arguments.sse, arguments.confirmation) {
        imported.retain(|found| !found.needs_confirmation());
    }
    if imported.is_empty() {
        println!("there is nothing to import");
        return Ok(ExitCode::SUCCESS);
    }
    let entries = match sandboxed(&imported, arguments, &settings, &environment) {
        Ok(entries) => entries,
        Err(error) => return Ok(print_error(&error, USAGE)),
    };
    let servers =
        if imported.len() == 1 { "1 server".to_owned() } else { format!("{} servers", imported.len()) };
    let question = format!("Write {servers} into {}?", edit.path().display());
    if !arguments.confirmation.confirm(&question) {
        return Ok(arguments.confirmation.unconfirmed());
    }
    let path = edit.path().to_owned();
    let written: Vec<_> = entries.iter().map(|(name, entry)| (*name, entry)).collect();
    let backup = write(files, edit, &written)?;
    println!("wrote {servers} into {}", path.display());
    if let Some(backup) = backup {
        println!("the previous version is in {}", backup.display());
    }
    warn_about_plaintext_copies(&imported);
    if !arguments.no_connect {
        let names: Vec<String> =
            imported.iter().filter_map(|found| Some(found.imported()?.0.to_string())).collect();
        super::server::cache_tools(files, Some(&names)).await;
    }
    println!(
        "their tools are still denied: `lockhouse policy init` generates a policy from the tools of the servers"
    );
    println!(
        "`lockhouse init` adds Lockhouse to your AI clients; then remove the imported entries from their files"
    );
    Ok(ExitCode::SUCCESS)
}

/// Reads the sources, and decides about each server in them. If `skips_unreadable`, a file that cannot be read is only
/// reported.
fn find(
    sources: &[ServersFile],
    skips_unreadable: bool,
    importer: &mut Importer<'_>,
    environment: &Environment,
) -> Result<Vec<Candidate>, ConfigError> {
    let mut found = Vec::new();
    for source in sources {
        match config::list_servers(&source.path, environment) {
            Ok(Some(listing)) => {
                let client = source.client.map_or(listing.dialect.name(), AiClient::name);
                found.extend(listing.servers.into_iter().map(|listed| (client, &source.path, listed)));
            }
            Ok(None) => {}
            // The other files may still be readable.
            Err(error) if skips_unreadable => drop(print_config_error(&error)),
            Err(error) => return Err(error),
        }
    }
    // Of two servers with one name, the one that needs no confirmation is imported.
    found.sort_by_key(|(_, _, listed)| listed.needs_confirmation());
    Ok(found.into_iter().map(|(client, path, listed)| importer.candidate(client, path, listed)).collect())
}

/// Says which servers use the deprecated transport HTTP+SSE, and asks whether Lockhouse takes them over nevertheless.
/// Without a question, it does only if `is_given`: the option `--sse`.
pub(super) fn takes_over_sse<'c>(
    servers: impl Iterator<Item = &'c Candidate>,
    is_given: bool,
    confirmation: Confirmation,
) -> bool {
    let names: Vec<&str> = servers.filter_map(|found| Some(found.imported()?.0.as_str())).collect();
    if names.is_empty() {
        return false;
    }
    println!(
        "over HTTP+SSE: {}. MCP has deprecated this transport, and more and more servers end it: ask the vendor for the URL of \
         streamable HTTP, often the same with /mcp at its end",
        names.join(", ")
    );
    let takes_over = is_given || confirmation.asks() && ask_yes_no("Take them over nevertheless?");
    if !takes_over {
        println!("they stay where they are, and Lockhouse does not get them; --sse takes them over\n");
    }
    takes_over
}

/// Returns the entries of the imported servers. Those of processes have a sandbox, unless `--no-sandbox` or the answer to a
/// question says otherwise.
///
/// # Errors
/// [`NoAnswer`].
fn sandboxed<'c>(
    imported: &[&'c Candidate],
    arguments: &Arguments,
    settings: &Settings,
    environment: &Environment,
) -> Result<Vec<(&'c ServerName, ServerEntry)>, NoAnswer> {
    let entries = imported.iter().filter_map(|found| found.imported());
    let mut entries: Vec<_> = entries.map(|(name, entry)| (name, entry.clone())).collect();
    if !entries.iter().any(|(_, entry)| entry.is_process()) {
        return Ok(entries);
    }
    println!("{}", line_width::wrap_lines(&format!("{}:", sandbox::describe_profile())));
    for (name, entry) in &entries {
        let definition = entry.resolve(environment, ServerLimits::default(), String::new());
        let lines =
            definition.ok().and_then(|it| sandbox::describe_paths(name, &it, &settings.engine.places));
        lines
            .into_iter()
            .flatten()
            .for_each(|line| println!("{}", line_width::wrap_line(&format!("  {line}"), "    ")));
    }
    let choice = match arguments.confirmation.asks() {
        true => arguments.sandbox.ask("Run these servers in the sandbox?")?,
        false => arguments.sandbox.choice(),
    };
    entries.iter_mut().for_each(|(_, entry)| entry.set_sandbox(&choice));
    Ok(entries)
}

/// Warns that the AI clients' files from which servers were imported still contain the servers' secrets in plain text,
/// and which of these files other Unix users can read.
pub(super) fn warn_about_plaintext_copies(imported: &[&Candidate]) {
    let mut files: Vec<&Path> = Vec::new();
    for candidate in imported {
        let names = candidate.imported().map(|(_, entry)| secret_names(entry)).unwrap_or_default();
        if names.is_empty() {
            continue;
        }
        let (place, server) = (format!("{}:{}", candidate.path.display(), candidate.line), &candidate.name);
        eprintln!(
            "lockhouse: warning: {} still contains plaintext secrets of server {}: {}. Remove the server from that file once it works in Lockhouse",
            sanitize(&place),
            sanitize(server),
            sanitize(&names.join(", "))
        );
        if !files.contains(&candidate.path.as_path()) {
            files.push(&candidate.path);
        }
    }
    for secret in config::readable_secrets(files.into_iter().map(Path::to_owned)) {
        eprintln!("lockhouse: warning: {}", sanitize(&secret.to_string()));
    }
}

fn show(candidates: &[Candidate], sources: &[ServersFile], is_chosen: bool, environment: &Environment) {
    let short = |path: &Path| short_path(path, environment);
    let row = |found: &Candidate| {
        let place = format!("{}:{}", short(&found.path), found.line);
        vec![found.client.clone(), place, found.name.clone(), found.reach.clone(), found.outcome()]
    };
    let rows: Vec<Vec<String>> = candidates.iter().map(row).collect();
    if rows.is_empty() {
        let places: Vec<String> = sources.iter().map(|source| short(&source.path)).collect();
        let places = if places.is_empty() {
            "no AI client's file was found".into()
        } else {
            format!("looked at {}", places.join(", "))
        };
        println!("found no servers: {}", sanitize(&places));
    } else {
        println!("{}", table::render(&["client", "file", "server", "command or URL", "outcome"], &rows));
    }
    candidates.iter().for_each(show_losses);
    if !is_chosen {
        show_project_files(environment, "import it with --from");
    }
    println!();
}

/// Returns a path for display: a path below the home directory begins with `~`.
pub(super) fn short_path(path: &Path, environment: &Environment) -> String {
    let below = environment.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
    below.map_or(path.display().to_string(), |below| format!("~/{}", below.display()))
}

/// Prints which settings of a server are lost when it is imported.
pub(super) fn show_losses(candidate: &Candidate) {
    for lost in candidate.imported().into_iter().flat_map(|(_, entry)| &entry.not_imported) {
        println!("{}: not imported: {}", sanitize(&candidate.name), sanitize(lost));
    }
}

/// Prints the files of the current project, which are not read. `advice` is the beginning of a command that reads one
/// of them.
pub(super) fn show_project_files(environment: &Environment, advice: &str) {
    for path in lockhouse_client_files::project_files(environment) {
        let path = sanitize(&short_path(&path, environment));
        println!("not read, since it belongs to the current project: {path}; {advice} {path}");
    }
}

/// Writes the imported servers to the configuration file. Returns the path of the backup of the previous file; `None`
/// if there was no previous file. If the configuration cannot be saved, removes the backup and the secret files that
/// this call has created.
fn write(
    files: &Files,
    mut edit: ConfigEdit,
    imported: &[(&ServerName, &ServerEntry)],
) -> Result<Option<PathBuf>, ConfigError> {
    let path = edit.path().to_owned();
    let unwritable = |source| ConfigError::Unwritable { path: path.clone(), source };
    let mut made = Vec::new();
    let written = write_tables(&mut edit, imported, &mut made).and_then(|()| {
        let backup = if path.is_file() { Some(back_up(&path).map_err(unwritable)?) } else { None };
        made.extend(backup.clone());
        let names: Vec<&str> = imported.iter().map(|(name, _)| name.as_str()).collect();
        let action = format!("import {}", names.join(", "));
        recorded_config_edit::save(edit, files, &action, false)?;
        Ok(backup)
    });
    if written.is_err() {
        for path in made {
            let _ = std::fs::remove_file(path);
        }
    }
    let backup = written?;
    if !is_delegated(&path) {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(unwritable)?;
    }
    Ok(backup)
}
