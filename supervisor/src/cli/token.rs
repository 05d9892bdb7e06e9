//! `lockhouse token`: who may come in over HTTP with a token.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use lockhouse_audit::TokenChange;
use lockhouse_front::access::{Issued, TokenFile, TokenFileError, TokenName};
use lockhouse_gate::no_grant;
use serde_json::json;

use super::command_log::{CommandLog, NotRecorded};
use super::{UNAVAILABLE, USAGE, complain_config, table};
use crate::config::{self, Files};

/// The longest that a token counts which expires at all.
const LONGEST: Duration = Duration::from_hours(24 * 3_660);

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Make a token for an AI client, and print it, once
    Create {
        /// What the policy and the audit log call its holder
        name: TokenName,
        /// Of what the policy permits, only this: SERVER, SERVER.TOOL, SERVER.BEGINNING*, or skills for saving skills
        #[arg(long, value_name = "SERVER", num_args = 1..)]
        only: Vec<String>,
        /// When it ends to count, from now: 90d, 12h [default: never]
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        expires: Option<Duration>,
    },
    /// List the tokens that were made; none of them can be shown again
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Take a token back: it counts for nothing at once, and what its holder runs is stopped
    Revoke {
        /// The name that it was given
        name: TokenName,
    },
}

pub(super) fn token(files: &Files, command: Command) -> ExitCode {
    let file = match config::load_token_file(files) {
        Ok(file) => file,
        Err(error) => return complain_config(&error),
    };
    let log = || CommandLog::open(files);
    let done = match command {
        Command::Create { name, only, expires } => create(&file, log, &name, only, expires),
        Command::List { json } => list(&file, json),
        Command::Revoke { name } => revoke(&file, log, &name),
    };
    done.unwrap_or_else(|(reason, status)| {
        eprintln!("lockhouse: {reason}");
        ExitCode::from(status)
    })
}

type Done = Result<ExitCode, (String, u8)>;

/// Why no token is made.
#[derive(Debug, thiserror::Error)]
enum CreateError {
    #[error(transparent)]
    File(#[from] TokenFileError),
    /// The audit log says why.
    #[error("no token was made: {0}")]
    Record(NotRecorded),
}

/// The token is all that goes to standard output, so that it can be piped to where it is kept.
fn create(
    file: &TokenFile,
    log: impl FnOnce() -> Result<CommandLog, NotRecorded>,
    name: &TokenName,
    only: Vec<String>,
    expires: Option<Duration>,
) -> Done {
    if let Some(wrong) = only.iter().find_map(|name| no_grant(name)) {
        return Err((format!("--only: {wrong}"), USAGE));
    }
    if expires.is_some_and(|after| after.is_zero() || after > LONGEST) {
        return Err(("--expires: use a time of up to ten years, such as 90d".into(), USAGE));
    }
    let until = expires.map(|after| SystemTime::now() + after);
    let only = (!only.is_empty()).then_some(only);
    // Who may come in is in the audit log, or does not come in.
    let log = log().map_err(|reason| (CreateError::Record(reason).to_string(), UNAVAILABLE))?;
    let change = TokenChange::Created { only: only.as_deref(), expires: until };
    let mut is_recorded = false;
    let record = || {
        log.token(name.as_str(), change).map_err(CreateError::Record)?;
        is_recorded = true;
        Ok::<(), CreateError>(())
    };
    let created = file.create(name, until, only.clone(), record);
    if created.is_err() && is_recorded {
        CommandLog::warn(log.token(name.as_str(), TokenChange::NotCreated));
    }
    let token = created.map_err(|error| (error.to_string(), USAGE))?;
    let name = name.as_str();
    eprintln!("lockhouse: a token for {name}, in {}, which has its hash alone", file.path().display());
    match &only {
        Some(only) => eprintln!("  may use, of what the policy permits: {}", only.join(", ")),
        None => eprintln!("  may use all that the policy permits; --only would narrow it"),
    }
    match until {
        Some(until) => eprintln!("  counts until {}", humantime::format_rfc3339_seconds(until)),
        None => eprintln!("  counts until it is revoked: lockhouse token revoke {name}"),
    }
    eprintln!("It is shown this once. Its holder sends it as the header Authorization: Bearer TOKEN");
    println!("{}", token.reveal());
    Ok(ExitCode::SUCCESS)
}

fn list(file: &TokenFile, as_json: bool) -> Done {
    let tokens = file.read().map_err(|error| (error.to_string(), UNAVAILABLE))?;
    let (now, time) = (SystemTime::now(), |seconds: u64| {
        humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
    });
    if as_json {
        let row = |issued: &Issued| {
            json!({
                "name": issued.name.as_str(), "state": issued.state(now), "created": time(issued.created),
                "expires": issued.expires.map(time), "revoked": issued.revoked.map(time), "only": issued.only,
            })
        };
        println!("{:#}", json!(tokens.iter().map(row).collect::<Vec<_>>()));
        return Ok(ExitCode::SUCCESS);
    }
    if tokens.is_empty() {
        eprintln!("lockhouse: there is no token in {}", file.path().display());
        return Ok(ExitCode::SUCCESS);
    }
    let row = |issued: &Issued| {
        let only = issued.only.as_ref().map_or_else(|| "all".to_owned(), |only| only.join(", "));
        let until = issued.expires.map_or_else(|| "-".to_owned(), time);
        vec![issued.name.as_str().to_owned(), issued.state(now).to_owned(), time(issued.created), until, only]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    println!("{}", table::render(&["name", "state", "created", "expires", "may use"], &rows));
    Ok(ExitCode::SUCCESS)
}

/// That must not fail for want of a record.
fn revoke(file: &TokenFile, log: impl FnOnce() -> Result<CommandLog, NotRecorded>, name: &TokenName) -> Done {
    match file.revoke(name) {
        Ok(true) => {
            println!("{} is revoked", name.as_str());
            let recorded = log().and_then(|log| log.token(name.as_str(), TokenChange::Revoked));
            CommandLog::warn(recorded);
            Ok(ExitCode::SUCCESS)
        }
        Ok(false) => {
            Err((format!("there is no token of the name {} that could be revoked", name.as_str()), USAGE))
        }
        Err(error) => Err((error.to_string(), UNAVAILABLE)),
    }
}
