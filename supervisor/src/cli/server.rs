//! `lockhouse server`

mod login;

use std::process::ExitCode;

use crate::config::Files;

/// What to do with a server.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Log in to a server over HTTP, and keep its token
    Login(login::Arguments),
    /// Forget the token of a server
    Logout {
        /// As configured
        name: String,
    },
}

/// Runs the command.
pub(super) async fn server(files: &Files, command: Command) -> ExitCode {
    match command {
        Command::Login(arguments) => login::login(files, arguments).await,
        Command::Logout { name } => login::logout(files, &name),
    }
}
