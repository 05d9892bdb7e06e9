//! `lockhouse audit`

mod export;
mod query;
mod row;
mod show;
mod tail;
mod verify;

use std::process::ExitCode;
use std::time::SystemTime;

use super::{UNAVAILABLE, complain, complain_config};
use crate::audit::PublicKey;
use crate::audit::read::Filter;
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
        Command::Show(arguments) => show::show(&settings.directory, &arguments),
        Command::Query(arguments) => query::query(&settings.directory, &arguments),
        Command::Verify(arguments) => verify::verify(&settings, &arguments),
        Command::Key => key(&settings.keys),
        Command::Export(arguments) => export::export(&settings.directory, &arguments),
    };
    done.unwrap_or_else(|error| complain(error.as_ref(), UNAVAILABLE))
}

/// A command's exit status, or why it could not go on.
type Done = Result<ExitCode, Box<dyn std::error::Error>>;

fn key(keys: &std::path::Path) -> Done {
    match PublicKey::of(keys)? {
        Some(key) => {
            println!("{}", key.to_hex());
            Ok(ExitCode::SUCCESS)
        }
        None => Err("there is no key yet: it is made when Lockhouse first runs code".into()),
    }
}

/// Which records are wanted.
#[derive(Debug, clap::Args)]
struct Wanted {
    /// Of this upstream server
    #[arg(long)]
    server: Option<String>,
    /// Of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Of this AI client
    #[arg(long)]
    client: Option<String>,
    /// With this outcome of a call, a question or an approval, or this status of an execution
    #[arg(long)]
    outcome: Option<String>,
    /// With this decision: allow, ask or deny
    #[arg(long)]
    decision: Option<String>,
    /// Of this execution; the beginning of its identifier is enough
    #[arg(long)]
    execution: Option<String>,
    /// From this time on: 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, as 2h or 7d
    #[arg(long, value_parser = moment)]
    since: Option<SystemTime>,
    /// Until this time, in the same forms
    #[arg(long, value_parser = moment)]
    until: Option<SystemTime>,
}

impl Wanted {
    fn filter(&self) -> Filter {
        let Self { server, tool, client, outcome, decision, execution, since, until } = self;
        Filter {
            server: server.clone(),
            tool: tool.clone(),
            client: client.clone(),
            outcome: outcome.clone(),
            decision: decision.clone(),
            execution: execution.as_ref().map(|id| id.to_lowercase()),
            since: *since,
            until: *until,
        }
    }
}

fn moment(text: &str) -> Result<SystemTime, String> {
    let midnight = format!("{text}T00:00:00Z");
    if let Ok(time) = humantime::parse_rfc3339_weak(text).or_else(|_| humantime::parse_rfc3339(&midnight)) {
        return Ok(time);
    }
    let ago = humantime::parse_duration(text).ok().and_then(|ago| SystemTime::now().checked_sub(ago));
    ago.ok_or_else(|| "use 2026-01-31, 2026-01-31T12:00:00Z, or how long ago, as 2h or 7d".into())
}
