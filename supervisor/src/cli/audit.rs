//! `lockhouse audit`: searches, verifies and exports the audit log.

mod export;
mod filter_options;
mod matching_records;
mod query;
mod record_line;
mod show;
mod tail;
pub(super) mod verify;

use std::process::ExitCode;

use lockhouse_audit::PublicKey;
use lockhouse_config::{self as config, Files};

use super::{UNAVAILABLE, print_config_error, print_error};

/// Subcommands of `lockhouse audit`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show the latest records
    Tail(tail::Arguments),
    /// Show all records of one run, with its code
    Show(show::Arguments),
    /// Show the records that match the given options, oldest first
    Query(query::Arguments),
    /// Verify that no record was changed, dropped, inserted, moved or removed
    Verify(verify::Arguments),
    /// Print the public key that verifies the log; keep a copy on another machine
    Key,
    /// Export the log for other systems, one JSON object per line
    Export(export::Arguments),
}

pub(super) async fn audit(files: &Files, command: Command) -> ExitCode {
    let settings = match config::load_audit_settings(files) {
        Ok(settings) => settings,
        Err(error) => return print_config_error(&error),
    };
    let result = match command {
        Command::Tail(arguments) => tail::tail(&settings.directory, &arguments).await,
        Command::Show(arguments) => show::show(&settings, &arguments),
        Command::Query(arguments) => query::query(&settings.directory, &arguments),
        Command::Verify(arguments) => verify::verify(&settings, &arguments),
        Command::Key => key(&settings.keys),
        Command::Export(arguments) => export::export(&settings.directory, &arguments),
    };
    result.unwrap_or_else(|error| print_error(error.as_ref(), UNAVAILABLE))
}

/// The exit status of a `lockhouse audit` subcommand, or the error that stopped it.
type CommandResult = Result<ExitCode, Box<dyn std::error::Error>>;

#[derive(Debug, thiserror::Error)]
#[error("there is no audit key yet: it is created when Lockhouse first runs code")]
struct NoKey;

fn key(keys: &std::path::Path) -> CommandResult {
    match PublicKey::load(keys)? {
        Some(key) => {
            println!("{}", key.to_hex());
            Ok(ExitCode::SUCCESS)
        }
        None => Err(NoKey.into()),
    }
}
