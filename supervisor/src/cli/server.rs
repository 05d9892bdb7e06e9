//! `lockhouse server`: adds, removes, lists, tests and reviews upstream servers.

mod add;
mod connection_progress;
pub(super) mod engine_tools;
mod first_connection;
mod get;
mod list;
mod login;
mod logs;
mod redacted_definition;
mod remove;
mod secret;
mod secret_files;
mod status_report;
mod test;
pub(super) mod tool_changes;
mod typed_value;

use std::process::ExitCode;

use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

use super::command_error::CommandError;
use super::terminal::sanitize;
use super::{USAGE, print_config_error};
use lockhouse_config::{Files, Settings, SystemEngine};
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
        /// With auth = "per_user": the token for the list of tools, and not that for your own calls
        #[arg(long)]
        service: bool,
    },
    /// Set a secret of the engine of the system for a person, one line of standard input; only for root
    Secret(secret::Arguments),
    /// Show the tools of a server whose definitions differ from the accepted ones, and the command that accepts them
    Diff(tool_changes::DiffArguments),
    /// Accept the current tool definitions of a server, as `server diff` shows them
    Accept(tool_changes::AcceptArguments),
    /// Show what a server wrote to its standard error under `lockhouse serve`
    Logs(logs::Arguments),
}

impl Command {
    /// Whether the command is about the servers of the engine that AI clients use, also on a host whose engines are of the
    /// system.
    pub(super) fn is_about_engine(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Diff(_) | Self::Accept(_))
    }
}

/// Runs a subcommand of `lockhouse server` and returns its exit status.
pub(super) async fn server(files: &Files, command: Command) -> ExitCode {
    if let Command::Add(arguments) = &command
        && let Ok(Some(engine)) = SystemEngine::of_this_account()
    {
        eprintln!(
            "lockhouse: nothing was changed: your AI clients use the engine of this host, and its servers are the administrator's. \
             Ask the administrator to add {} to the configuration of the engine of user {}",
            sanitize(&arguments.name),
            engine.person()
        );
        return ExitCode::from(USAGE);
    }
    let result = match command {
        Command::Add(arguments) => add::add(files, &arguments).await,
        Command::Remove(arguments) => remove::remove(files, &arguments).await,
        Command::List(arguments) => list::list(files, &arguments).await,
        Command::Get(arguments) => get::get(files, &arguments).await,
        Command::Test(arguments) => test::test(files, arguments).await,
        Command::Login(arguments) => Ok(login::login(files, arguments).await),
        Command::Logout { name, service } => Ok(login::logout(files, &name, service).await),
        Command::Secret(arguments) => Ok(secret::secret(arguments).await),
        Command::Diff(arguments) => match arguments.person.engine() {
            Some(engine) => engine_tools::diff(engine, &arguments).await,
            None => tool_changes::diff(files, &arguments).await,
        },
        Command::Accept(arguments) => match arguments.person.engine() {
            Some(engine) => engine_tools::accept(engine, &arguments).await,
            None => tool_changes::accept(files, &arguments).await,
        },
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
