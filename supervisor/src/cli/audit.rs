//! `lockhouse audit`: searches, verifies and exports the audit log.

mod export;
mod filter_options;
mod forward;
mod head;
mod matching_records;
mod query;
mod record_line;
mod rekey;
mod show;
mod sink;
mod tail;
mod usage;
pub(super) mod verify;

use std::process::ExitCode;

use lockhouse_audit::{AuditSettings, SinkAddress, present_key};
use lockhouse_base::audit_files::INDEX;
use lockhouse_config::{self as config, Files};

use super::{UNAVAILABLE, print_config_error, print_error};
pub(super) use usage::Arguments as UsageArguments;

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
    /// Print the present end of the log, signed, for a witness on another machine
    Head(head::Arguments),
    /// Begin a new key after the present one was lost
    Rekey(rekey::Arguments),
    /// Run the audit sink, which writes the logs of all engines of this host
    Sink(sink::Arguments),
    /// Export the log for other systems, one JSON object per line
    Export(export::Arguments),
    /// Show how far the log is delivered to each destination of the configuration
    Forward(forward::Arguments),
}

pub(super) async fn audit(files: &Files, command: Command) -> ExitCode {
    if let Command::Sink(arguments) = command {
        return sink::sink(files, arguments)
            .await
            .unwrap_or_else(|error| print_error(error.as_ref(), UNAVAILABLE));
    }
    let settings = match readable_log(files) {
        Ok(settings) => settings,
        Err(status) => return status,
    };
    let result = match command {
        Command::Tail(arguments) => tail::tail(&settings.directory, &arguments).await,
        Command::Show(arguments) => show::show(&settings, &arguments),
        Command::Query(arguments) => query::query(&settings.directory, &arguments),
        Command::Verify(arguments) => verify::verify(&settings, &arguments),
        Command::Key => key(&settings),
        // It needs no configuration, and was started above.
        Command::Sink(_) => Ok(ExitCode::SUCCESS),
        Command::Head(arguments) => head::head(&settings, &arguments),
        Command::Rekey(arguments) => rekey::rekey(&settings, &arguments),
        Command::Export(arguments) => export::export(&settings.directory, &arguments),
        Command::Forward(arguments) => forward::forward(files, &settings, &arguments),
    };
    result.unwrap_or_else(|error| print_error(error.as_ref(), UNAVAILABLE))
}

/// Runs `lockhouse usage`.
pub(super) fn usage(files: &Files, arguments: &UsageArguments) -> ExitCode {
    match readable_log(files) {
        Ok(settings) => usage::usage(&settings.directory, arguments)
            .unwrap_or_else(|error| print_error(error.as_ref(), UNAVAILABLE)),
        Err(status) => status,
    }
}

/// Returns the settings of the log, if this user can read it.
fn readable_log(files: &Files) -> Result<AuditSettings, ExitCode> {
    let settings = config::load_audit_settings(files).map_err(|error| print_config_error(&error))?;
    check_destination(&settings).map_err(|error| print_error(&error, UNAVAILABLE))?;
    Ok(settings)
}

/// The exit status of a `lockhouse audit` subcommand, or the error that stopped it.
type CommandResult = Result<ExitCode, Box<dyn std::error::Error>>;

/// The log is with the audit sink.
#[derive(Debug, thiserror::Error)]
#[error(
    "the audit sink at {0} writes this log: its account and root can read it there, with LOGS_DIRECTORY and STATE_DIRECTORY as \
     in docs/audit.md"
)]
struct WrittenBySink(SinkAddress);

/// Checks that the log is in files of this user. A log from before there was a sink can still be read.
fn check_destination(settings: &AuditSettings) -> Result<(), WrittenBySink> {
    match &settings.sink {
        Some(sink) if !settings.directory.join(INDEX).exists() => Err(WrittenBySink(sink.clone())),
        Some(sink) => {
            eprintln!(
                "lockhouse: note: the audit sink at {sink} writes the log; this is what is in {}",
                settings.directory.display()
            );
            Ok(())
        }
        None => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is no audit key yet: it is created when Lockhouse first runs code")]
struct NoKey;

fn key(settings: &AuditSettings) -> CommandResult {
    match present_key(&settings.directory, &settings.keys)? {
        Some(key) => {
            println!("{}", key.to_hex());
            Ok(ExitCode::SUCCESS)
        }
        None => Err(NoKey.into()),
    }
}
