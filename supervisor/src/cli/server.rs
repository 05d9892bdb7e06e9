//! `lockhouse server`: adds, removes, lists, tests and reviews upstream servers.

mod add;
mod connection_progress;
mod first_connection;
mod get;
mod list;
mod login;
mod logs;
mod redacted_definition;
mod remove;
mod secret_files;
mod status_report;
mod test;
pub(super) mod tool_changes;

use std::process::ExitCode;

use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

use super::command_error::CommandError;
use super::print_config_error;
use super::terminal::sanitize;
use lockhouse_config::{Files, Settings};
use lockhouse_policies::most_similar_name;

pub(super) use add::hint;
pub(super) use connection_progress::connect_all;
pub(super) use first_connection::cache_tools;

/// Subcommands of `lockhouse server`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Add a server to the configuration
    Add(add::Arguments),
    /// Remove a server from the configuration, with its stored secrets
    Remove(remove::Arguments),
    /// Connect to every server and show its state. The exit status is always 0
    List(list::Arguments),
    /// Show one server in detail: its configuration, state and tools
    Get(get::Arguments),
    /// Test the connection to one server step by step. The exit status is 7 if a step fails
    Test(test::Arguments),
    /// Log in to a server over HTTP with OAuth, and store the token
    Login(login::Arguments),
    /// Delete the stored token of a server
    Logout {
        /// The configured name of the server
        name: String,
    },
    /// Show the tools of a server whose definitions differ from the accepted ones, and the command that accepts them
    Diff(tool_changes::DiffArguments),
    /// Accept the current tool definitions of a server, as `server diff` shows them
    Accept(tool_changes::AcceptArguments),
    /// Show what a server wrote to its standard error under `lockhouse serve`
    Logs(logs::Arguments),
}

/// Runs a subcommand of `lockhouse server` and returns its exit status.
pub(super) async fn server(files: &Files, command: Command) -> ExitCode {
    let result = match command {
        Command::Add(arguments) => add::add(files, &arguments).await,
        Command::Remove(arguments) => remove::remove(files, &arguments),
        Command::List(arguments) => list::list(files, &arguments).await,
        Command::Get(arguments) => get::get(files, &arguments).await,
        Command::Test(arguments) => test::test(files, arguments).await,
        Command::Login(arguments) => Ok(login::login(files, arguments).await),
        Command::Logout { name } => Ok(login::logout(files, &name)),
        Command::Diff(arguments) => tool_changes::diff(files, &arguments).await,
        Command::Accept(arguments) => tool_changes::accept(files, &arguments).await,
        Command::Logs(arguments) => logs::logs(files, &arguments).await,
    };
    result.unwrap_or_else(|status| status)
}

fn load(files: &Files) -> Result<Settings, ExitCode> {
    Settings::load(files).map_err(|error| print_config_error(&error))
}

/// Finds a configured upstream server by name.
fn find<'a>(
    settings: &'a Settings,
    name: &str,
) -> Result<(&'a ServerName, &'a ServerDefinition), CommandError> {
    let found = settings.engine.servers.iter().find(|(known, _)| known.as_str() == name);
    found.ok_or_else(|| unknown(settings, name))
}

/// Returns the error for a name that no server in use has. It suggests a similar name.
fn unknown(settings: &Settings, name: &str) -> CommandError {
    if let Some(unused) = settings.skipped_servers.iter().find(|unused| unused.name == name) {
        let (origin, reason) = (sanitize(&unused.origin), sanitize(&unused.reason));
        return CommandError::usage(format!("server {name:?} from {origin} is not used: {reason}"));
    }
    let known = || settings.engine.servers.keys().map(ServerName::as_str);
    let hint_text = match most_similar_name(name, known()) {
        Some(suggestion) => format!("did you mean {suggestion}?"),
        None if settings.engine.servers.is_empty() => {
            "none is configured; `lockhouse server add` adds one".into()
        }
        None => "`lockhouse server list` lists all servers".into(),
    };
    CommandError::usage(format!("there is no server {name:?}; {hint_text}"))
}
