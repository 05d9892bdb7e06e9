//! `lockhouse token`: creates, lists and revokes the tokens that authenticate AI clients over HTTP.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use lockhouse_access::{TokenFile, TokenFileError, TokenName, TokenRecord};
use lockhouse_audit::TokenChange;
use lockhouse_base::representable_time::representable;
use lockhouse_config::{self as config, Files};
use lockhouse_gate::grant_error;
use serde_json::json;

use super::command_audit_log::{CommandAuditLog, RecordError};
use super::{UNAVAILABLE, USAGE, print_config_error, table};

/// The maximum lifetime of a token with an expiry time: about ten years.
const EXPIRES_MAX: Duration = Duration::from_hours(24 * 3_660);

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Create a token for an AI client, and print it once
    Create {
        /// The name of the token's holder in the policy and the audit log
        name: TokenName,
        /// Restrict the token to SERVER, SERVER.TOOL, SERVER.PREFIX*, or `skills` (saving skills); the policy still
        /// applies
        #[arg(long, value_name = "SERVER", num_args = 1..)]
        only: Vec<String>,
        /// Expire after this time, such as 90d or 12h [default: never]
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        expires: Option<Duration>,
    },
    /// List the tokens; their values cannot be shown again
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token at once; running code of its holder is stopped
    Revoke {
        /// The name of the token
        name: TokenName,
    },
}

pub(super) fn token(files: &Files, command: Command) -> ExitCode {
    let file = match config::load_token_file(files) {
        Ok(file) => file,
        Err(error) => return print_config_error(&error),
    };
    let log = || CommandAuditLog::open(files);
    let result = match command {
        Command::Create { name, only, expires } => create(&file, log, &name, only, expires),
        Command::List { json } => list(&file, json),
        Command::Revoke { name } => revoke(&file, log, &name),
    };
    result.unwrap_or_else(|(reason, status)| {
        eprintln!("lockhouse: {reason}");
        ExitCode::from(status)
    })
}

type CommandResult = Result<ExitCode, (String, u8)>;

/// Why a token for an AI client was not created.
#[derive(Debug, thiserror::Error)]
enum CreateError {
    #[error(transparent)]
    File(#[from] TokenFileError),
    /// The creation of the token could not be recorded in the audit log.
    #[error("no token was created: {0}")]
    Record(RecordError),
}

/// Creates a token that is valid for the time `expires` (`None`: without end) and may use only what `only` names
/// (empty: everything). `log` opens the audit log. Standard output receives only the token, so that it can be piped to
/// a secret store.
fn create(
    file: &TokenFile,
    log: impl FnOnce() -> Result<CommandAuditLog, RecordError>,
    name: &TokenName,
    only: Vec<String>,
    expires: Option<Duration>,
) -> CommandResult {
    if let Some(wrong) = only.iter().find_map(|name| grant_error(name)) {
        return Err((format!("--only: {wrong}"), USAGE));
    }
    if expires.is_some_and(|after| after.is_zero() || after > EXPIRES_MAX) {
        return Err(("--expires: use a time of up to ten years, such as 90d".into(), USAGE));
    }
    let until = expires.map(|after| SystemTime::now() + after);
    let only = (!only.is_empty()).then_some(only);
    // No token becomes valid without a record in the audit log.
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
        CommandAuditLog::warn(log.token(name.as_str(), TokenChange::NotCreated));
    }
    let token = created.map_err(|error| (error.to_string(), USAGE))?;
    let name = name.as_str();
    eprintln!("lockhouse: created a token for {name}; {} stores only its hash", file.path().display());
    match &only {
        Some(only) => eprintln!("  restricted to: {} (the policy still applies)", only.join(", ")),
        None => eprintln!("  may use everything that the policy permits; restrict it with --only"),
    }
    match until {
        Some(until) => eprintln!("  expires at {}", humantime::format_rfc3339_seconds(until)),
        None => eprintln!("  does not expire; revoke it with: lockhouse token revoke {name}"),
    }
    eprintln!(
        "The token is shown only once. The AI client sends it in the header: Authorization: Bearer TOKEN"
    );
    println!("{}", token.reveal());
    Ok(ExitCode::SUCCESS)
}

fn list(file: &TokenFile, as_json: bool) -> CommandResult {
    let tokens = file.read().map_err(|error| (error.to_string(), UNAVAILABLE))?;
    let (now, time) = (SystemTime::now(), |seconds: u64| {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        let time = representable(time.unwrap_or_else(SystemTime::now));
        humantime::format_rfc3339_seconds(time).to_string()
    });
    if as_json {
        let row = |issued: &TokenRecord| {
            json!({
                "name": issued.name.as_str(), "state": issued.state(now), "created": time(issued.created),
                "expires": issued.expires.map(time), "revoked": issued.revoked.map(time), "only": issued.only,
            })
        };
        println!("{:#}", json!(tokens.iter().map(row).collect::<Vec<_>>()));
        return Ok(ExitCode::SUCCESS);
    }
    if tokens.is_empty() {
        eprintln!("lockhouse: there are no tokens in {}", file.path().display());
        return Ok(ExitCode::SUCCESS);
    }
    let row = |issued: &TokenRecord| {
        let only = issued.only.as_ref().map_or_else(|| "all".to_owned(), |only| only.join(", "));
        let until = issued.expires.map_or_else(|| "-".to_owned(), time);
        vec![issued.name.as_str().to_owned(), issued.state(now).to_owned(), time(issued.created), until, only]
    };
    let rows: Vec<Vec<String>> = tokens.iter().map(row).collect();
    println!("{}", table::render(&["name", "state", "created", "expires", "restricted to"], &rows));
    Ok(ExitCode::SUCCESS)
}

/// Revokes an AI client's token, even if this cannot be recorded in the audit log, which `log` opens.
fn revoke(
    file: &TokenFile,
    log: impl FnOnce() -> Result<CommandAuditLog, RecordError>,
    name: &TokenName,
) -> CommandResult {
    match file.revoke(name) {
        Ok(true) => {
            println!("revoked {}", name.as_str());
            let recorded = log().and_then(|log| log.token(name.as_str(), TokenChange::Revoked));
            CommandAuditLog::warn(recorded);
            Ok(ExitCode::SUCCESS)
        }
        Ok(false) => Err((format!("there is no valid token named {}", name.as_str()), USAGE)),
        Err(error) => Err((error.to_string(), UNAVAILABLE)),
    }
}
