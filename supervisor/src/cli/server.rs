//! `lockhouse server`: the upstream servers, as the people see them who look after them.

mod add;
mod changes;
mod definition;
mod get;
mod list;
mod login;
mod logs;
mod progress;
mod remove;
mod report;
mod secrets;
mod test;

use std::process::ExitCode;

use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

use super::terminal::harmless;
use super::{USAGE, complain_config};
use crate::config::{Files, Settings};
use lockhouse_policies::nearest;

pub(super) use add::hint;

/// What to do with the servers.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Add a server to the configuration
    Add(add::Arguments),
    /// Take a server out of the configuration, and the secrets that were kept for it
    Remove(remove::Arguments),
    /// Connect to every server and show how each one is. The exit status is 0 whatever is found
    List(list::Arguments),
    /// One server in full: how it is reached, what it may take, and how it is
    Get(get::Arguments),
    /// Try one server step by step, and say what is wrong. The exit status is 7 if anything is
    Test(test::Arguments),
    /// Log in to a server over HTTP, and keep its token
    Login(login::Arguments),
    /// Forget the token of a server
    Logout {
        /// As configured
        name: String,
    },
    /// Show the tools of a server that are not as they were accepted, and the command that accepts them
    Diff(changes::DiffArguments),
    /// Accept the tools of a server as `server diff` showed them
    Accept(changes::AcceptArguments),
    /// What a server wrote to its standard error while `lockhouse serve` ran it
    Logs(logs::Arguments),
}

/// Does it.
pub(super) async fn server(files: &Files, command: Command) -> ExitCode {
    let done = match command {
        Command::Add(arguments) => add::add(files, &arguments),
        Command::Remove(arguments) => remove::remove(files, &arguments),
        Command::List(arguments) => list::list(files, &arguments).await,
        Command::Get(arguments) => get::get(files, &arguments).await,
        Command::Test(arguments) => test::test(files, arguments).await,
        Command::Login(arguments) => Ok(login::login(files, arguments).await),
        Command::Logout { name } => Ok(login::logout(files, &name)),
        Command::Diff(arguments) => changes::diff(files, &arguments).await,
        Command::Accept(arguments) => changes::accept(files, &arguments).await,
        Command::Logs(arguments) => logs::logs(files, &arguments).await,
    };
    done.unwrap_or_else(|status| status)
}

fn load(files: &Files) -> Result<Settings, ExitCode> {
    Settings::load(files).map_err(|error| complain_config(&error))
}

/// The server of this name, or words about those that there are.
fn find<'a>(settings: &'a Settings, name: &str) -> Result<(&'a ServerName, &'a ServerDefinition), ExitCode> {
    let found = settings.engine.servers.iter().find(|(known, _)| known.as_str() == name);
    found.ok_or_else(|| unknown(settings, name))
}

fn unknown(settings: &Settings, name: &str) -> ExitCode {
    if let Some(unused) = settings.unused.iter().find(|unused| unused.name == name) {
        let (origin, reason) = (harmless(&unused.origin), harmless(&unused.reason));
        eprintln!("lockhouse: server {name:?} of {origin} is left out: {reason}");
        return ExitCode::from(USAGE);
    }
    let known = || settings.engine.servers.keys().map(ServerName::as_str);
    let told = match nearest(name, known()) {
        Some(meant) => format!("did you mean {meant}?"),
        None if settings.engine.servers.is_empty() => {
            "none is configured; `lockhouse server add` adds one".into()
        }
        None => "`lockhouse server list` shows all".into(),
    };
    eprintln!("lockhouse: there is no server {name:?}; {told}");
    ExitCode::from(USAGE)
}
