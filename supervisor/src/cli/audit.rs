//! `lockhouse audit`

mod export;
mod matching;
mod query;
mod row;
mod show;
mod tail;
mod verify;
mod wanted;

use std::process::ExitCode;

use lockhouse_audit::PublicKey;

use super::{UNAVAILABLE, complain, complain_config};
use crate::config::{self, Files};

/// What to do with the audit log.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show the latest records
    Tail(tail::Arguments),
    /// Tell the story of one execution, with its code
    Show(show::Arguments),
    /// Show the records that are as the options say, in the order of time
    Query(query::Arguments),
    /// Say whether the log is as it was written: what was changed, dropped, inserted, moved or removed
    Verify(verify::Arguments),
    /// Print the public key that verifies the log, to be kept elsewhere
    Key,
    /// Write the log in a format that other systems read, one JSON object a line
    Export(export::Arguments),
}

pub(super) async fn audit(files: &Files, command: Command) -> ExitCode {
    let settings = match config::load_audit_settings(files) {
        Ok(settings) => settings,
        Err(error) => return complain_config(&error),
    };
    let done = match command {
        Command::Tail(arguments) => tail::tail(&settings.directory, &arguments).await,
        Command::Show(arguments) => show::show(&settings, &arguments),
        Command::Query(arguments) => query::query(&settings.directory, &arguments),
        Command::Verify(arguments) => verify::verify(&settings, &arguments),
        Command::Key => key(&settings.keys),
        Command::Export(arguments) => export::export(&settings.directory, &arguments),
    };
    done.unwrap_or_else(|error| complain(error.as_ref(), UNAVAILABLE))
}

/// A command's exit status, or why it could not go on.
type Done = Result<ExitCode, Box<dyn std::error::Error>>;

#[derive(Debug, thiserror::Error)]
#[error("there is no key yet: it is made when Lockhouse first runs code")]
struct NoKey;

fn key(keys: &std::path::Path) -> Done {
    match PublicKey::of(keys)? {
        Some(key) => {
            println!("{}", key.to_hex());
            Ok(ExitCode::SUCCESS)
        }
        None => Err(NoKey.into()),
    }
}
