//! `lockhouse server add`: adds an upstream server to the configuration.

mod new_server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_base::url_protection::is_protected;
use lockhouse_catalog::python_name;
use lockhouse_config::{self as config, ConfigEdit, ConfigError, Files, SandboxChoice, Settings};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{HttpTransport, ServerDefinition};

use super::secret_files::{remove_unused, secret_files};
use crate::cli::sandbox_options::SandboxOptions;
use crate::cli::terminal::sanitize;
use crate::cli::{USAGE, line_width, print_config_error, print_error, recorded_config_edit, sandbox};
use new_server::{NewServer, Target};

#[derive(Debug, clap::Args)]
#[command(override_usage = "lockhouse server add [OPTIONS] NAME -- COMMAND ARGS...
       lockhouse server add [OPTIONS] NAME URL")]
pub(in crate::cli) struct Arguments {
    /// A name of your choice, by which code imports the server
    pub(super) name: String,
    /// URL of a server over HTTP
    #[arg(value_name = "URL")]
    target: Vec<String>,
    /// Program of a server that Lockhouse starts, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// stdio, http or sse, which MCP has deprecated [default: http for a URL, otherwise stdio]
    #[arg(short, long)]
    transport: Option<String>,
    /// Set a variable in the server's environment. Without =VALUE, the value is typed, or read from standard input: other
    /// users of this machine can see the arguments of a command
    #[arg(short, long, value_name = "KEY[=VALUE]")]
    env: Vec<String>,
    /// Pass a variable of Lockhouse's own environment to the server
    #[arg(long, value_name = "KEY")]
    env_from: Vec<String>,
    /// Send this header with every request. Without a value, it is typed, or read from standard input
    #[arg(short = 'H', long, value_name = "NAME[: VALUE]")]
    header: Vec<String>,
    /// Start the server in this directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    #[command(flatten)]
    sandbox: SandboxOptions,
    /// Replace an existing server of this name
    #[arg(long)]
    force: bool,
    /// Do not connect to the server now
    #[arg(long)]
    no_connect: bool,
    /// Accepted for compatibility with `claude mcp add`
    #[arg(short, long, hide = true)]
    scope: Option<String>,
}

pub(super) async fn add(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let server = NewServer::new(arguments, &mut super::typed_value::read);
    let mut server = server.map_err(|invalid| print_error(&invalid, USAGE))?;
    // A configuration file given by --config that does not exist is created.
    let is_new = files.config.as_ref().is_some_and(|named| !named.exists());
    let servers = if is_new { BTreeMap::new() } else { super::load(files)?.engine.servers };
    let mut edit = ConfigEdit::open(files).map_err(|error| print_config_error(&error))?;
    if let Some(conflict) = name_conflict(&server.name, &edit, &servers, arguments.force) {
        return Err(print_error(&conflict, USAGE));
    }
    let name = server.name.to_string();
    let replaced = edit.server(&name).map(secret_files).unwrap_or_default();
    let stored = store_secrets(&mut server, edit.path()).map_err(|error| print_config_error(&error))?;
    let path = edit.path().to_owned();
    edit.set_server(&name, server.to_table());
    let text = edit.text();
    let action = server.action();
    if let Err(error) = recorded_config_edit::save(edit, files, &action, false) {
        delete_stored(&stored);
        return Err(print_config_error(&error));
    }
    println!("added {name} to {}", path.display());
    print_stored(&stored, &server);
    remove_unused(&replaced, &text);
    warn(&server);
    warn_if_unused(files, &name);
    show_sandbox(files, &server);
    if !arguments.no_connect {
        super::cache_tools(files, Some(std::slice::from_ref(&name))).await;
    }
    print_next_steps(files, &name);
    Ok(ExitCode::SUCCESS)
}

/// Why the name of the new server cannot be used: another server already has it.
#[derive(Debug, thiserror::Error)]
enum NameConflict {
    #[error("a server {other} already exists, from {origin}; choose another name")]
    Elsewhere { other: ServerName, origin: String },
    #[error(
        "a server {other} already exists, from {origin}, and has the same name in code; choose another name"
    )]
    SameInCode { other: ServerName, origin: String },
    #[error(
        "a server {name} already exists in {path}; replace it with --force, or remove it with `lockhouse server remove {name}`"
    )]
    Here { name: ServerName, path: PathBuf },
}

/// Returns why a server of this name cannot be added, or `None` if it can. `servers` are all configured servers. With
/// `force`, a server of this name in the edited configuration file is no conflict, since it is replaced.
fn name_conflict(
    name: &ServerName,
    edit: &ConfigEdit,
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

/// Prints which values were moved to files as secrets. Warns if one of them was an argument of this command, or is an
/// argument of the server's command line: other users of this machine can see both.
fn print_stored(stored: &[StoredSecret], server: &NewServer) {
    for StoredSecret { name, file, .. } in stored {
        println!(
            "the value of {name} looks like a secret: it was moved to {}, which only you can read, and the configuration refers to that file",
            file.display()
        );
    }
    if stored.iter().any(|stored| stored.in_command_line) {
        eprintln!(
            "lockhouse: warning: other users of this machine can see the server's arguments while it runs: if the server accepts the secret in an environment variable, pass it with -e KEY"
        );
    }
    if stored.iter().any(|stored| !server.typed.contains(&stored.name)) {
        eprintln!(
            "lockhouse: warning: other users of this machine could see the secret in the arguments of this command, and shells keep it in their history: with -e KEY or -H NAME, `lockhouse server add` asks for the value"
        );
    }
}

fn warn_if_unused(files: &Files, name: &str) {
    let unused = Settings::load(files).map(|settings| settings.skipped_servers).unwrap_or_default();
    if let Some(unused) = unused.iter().find(|unused| unused.name == name) {
        eprintln!("lockhouse: warning: the server cannot be used now: {}", sanitize(&unused.reason));
    }
}

/// Prints what the sandbox permits the server, and how to do without it.
fn show_sandbox(files: &Files, server: &NewServer) {
    let NewServer { name, target: Target::Stdio { sandbox: SandboxChoice::Profile { .. }, .. }, .. } = server
    else {
        return;
    };
    let profile = sandbox::describe_profile();
    let words = format!("{profile}. --no-sandbox REASON gives the server all rights of this account. Here:");
    println!("{}", line_width::wrap_lines(&words));
    let Ok(settings) = Settings::load(files) else { return };
    let definition = settings.engine.servers.get(name);
    let lines = definition.and_then(|it| sandbox::describe_paths(name, it, &settings.engine.places));
    lines
        .into_iter()
        .flatten()
        .for_each(|line| println!("{}", line_width::wrap_line(&format!("  {line}"), "    ")));
}

fn print_next_steps(files: &Files, name: &str) {
    println!("next: test it with `lockhouse server test {name}`");
    match config::find_policy(files) {
        Some(policy) => println!(
            "its tools are denied until a [servers.{name}] table in {} allows them",
            policy.display()
        ),
        None => {
            println!("its tools are denied until a policy allows them: `lockhouse policy init` generates one")
        }
    }
}

/// A secret value of a new server that was moved to a file.
struct StoredSecret {
    name: String,
    file: PathBuf,
    /// Whether the secret value is part of the server's command line.
    in_command_line: bool,
}

/// Moves the values of a new server that look like secrets to files, and replaces them by placeholders that name the
/// files. The files are in the directory for secrets; if that is not known, in a directory beside the configuration
/// file `config`. On failure, deletes the files that it has written.
fn store_secrets(server: &mut NewServer, config: &Path) -> Result<Vec<StoredSecret>, ConfigError> {
    let directory = config::secrets_directory().unwrap_or_else(|| config.with_file_name("secrets"));
    let (server_name, typed) = (server.name.to_string(), server.typed.clone());
    let (mut stored, mut failed) = (Vec::new(), None);
    server.replace_secrets(|name, value, in_command_line| {
        if failed.is_some() || !(typed.contains(name) || config::looks_secret(name, value)) {
            return None;
        }
        let name = if name.is_empty() { "an argument" } else { name };
        match config::store_secret(&directory, &server_name, name, value) {
            Ok(file) => {
                let reference = format!("${{file:{}}}", file.display());
                stored.push(StoredSecret { name: name.to_owned(), file, in_command_line });
                Some(reference)
            }
            Err(source) => {
                failed = Some(ConfigError::Unwritable { path: directory.clone(), source });
                None
            }
        }
    });
    match failed {
        None => Ok(stored),
        Some(error) => {
            delete_stored(&stored);
            Err(error)
        }
    }
}

/// Deletes the secret files that were written for a server that could not be added.
fn delete_stored(stored: &[StoredSecret]) {
    stored.iter().for_each(|stored| drop(std::fs::remove_file(&stored.file)));
}

/// Warns if the server uses a deprecated transport, or if its headers are sent to another host without TLS.
fn warn(server: &NewServer) {
    let Target::Http { url, transport, headers, .. } = &server.target else { return };
    if *transport == HttpTransport::Sse {
        eprintln!("lockhouse: warning: {}", config::sse_warning(server.name.as_str()));
    }
    if !is_protected(url) && !headers.is_empty() {
        let host = sanitize(url.host_str().unwrap_or_default());
        eprintln!("lockhouse: warning: without https, the headers are sent to {host} unencrypted");
    }
}

/// Returns a hint for a usage error that clap cannot explain: in `server add NAME npx -y PACKAGE`, `--` is missing
/// before the server's own command. `words` is the command line of this process. `None` for any other usage error.
pub(in crate::cli) fn hint(error: &clap::Error, words: &[String]) -> Option<&'static str> {
    let position = words.windows(2).position(|words| words == ["server", "add"])?;
    let dashes = words[position..].iter().any(|word| word == "--");
    (error.kind() == clap::error::ErrorKind::UnknownArgument && !dashes).then_some(
        "write the server's own command and its options after --: `lockhouse server add NAME -- COMMAND ARGS...`",
    )
}
