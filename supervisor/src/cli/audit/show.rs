//! `lockhouse audit show`

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use lockhouse_policies::printable;

use super::Done;
use super::row::{shown_time, story_row};
use crate::audit::read::{Filter, records};
use crate::audit::{Event, code};
use crate::files;

/// Programs are smaller than this by configuration.
const CODE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Characters of an identifier: fewer could be of very many.
const EXECUTION_CHARS_MIN: usize = 4;
const EXECUTION_CHARS: usize = 36;
/// Executions that are listed when several are meant.
const LISTED_MAX: usize = 5;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Its identifier, or the beginning of it
    execution: String,
    /// Print its records as they are written
    #[arg(long)]
    json: bool,
}

pub(super) fn show(directory: &Path, arguments: &Arguments) -> Done {
    let execution = the_one(directory, &arguments.execution.to_lowercase())?;
    let filter = Filter { execution: Some(execution.clone()), since: began(&execution), ..Filter::default() };
    let mut start = None;
    for found in records(directory, &filter)? {
        let found = found?;
        if arguments.json {
            println!("{}", found.text);
            continue;
        }
        let time = humantime::parse_rfc3339(&found.record.time).unwrap_or(SystemTime::UNIX_EPOCH);
        let start = *start.get_or_insert(time);
        let since = time.duration_since(start).unwrap_or_default().as_secs_f64() * 1000.0;
        if let Event::Execution { execution, client, language, servers, code, code_bytes } =
            &found.record.event
        {
            println!("execution  {}", printable(execution));
            println!("began      {} UTC", shown_time(&found.record.time));
            println!("from       {}", printable(client.as_deref().unwrap_or("the command line")));
            println!("servers    {}", printable(&servers.join(", ")));
            println!("code       {}, {code_bytes} bytes, SHA-256 {}\n", printable(language), printable(code));
            print_code(directory, language, code);
        } else if let Some(row) = story_row(&found.record, since) {
            println!("{row}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_code(directory: &Path, language: &str, hash: &str) {
    // What the log says is no path.
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let path = code::path(directory, language, hash);
    match files::read_bounded(&path, CODE_BYTES_MAX) {
        Ok(Some(code)) if is_hash => {
            for (number, line) in code.lines().enumerate() {
                println!("{:>6}  {}", number + 1, printable(line));
            }
            println!();
        }
        Ok(_) => println!("The code was not kept, or not for so long.\n"),
        Err(error) => println!("The code cannot be read: {error}\n"),
    }
}

/// When it was asked for, as its identifier says; a moment earlier.
fn began(execution: &str) -> Option<SystemTime> {
    let id = uuid::Uuid::parse_str(execution).ok()?;
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let since = Duration::new(seconds, nanos).checked_sub(Duration::from_secs(1))?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// The one execution whose identifier begins so.
fn the_one(directory: &Path, prefix: &str) -> Result<String, Box<dyn std::error::Error>> {
    if prefix.len() < EXECUTION_CHARS_MIN {
        return Err(format!("give at least {EXECUTION_CHARS_MIN} characters of the identifier").into());
    }
    let is_whole = prefix.len() == EXECUTION_CHARS;
    let since = if is_whole { began(prefix) } else { None };
    let filter = Filter { execution: Some(prefix.to_owned()), since, ..Filter::default() };
    let mut meant = BTreeSet::new();
    for found in records(directory, &filter)? {
        if let Event::Execution { execution, .. } = found?.record.event {
            meant.insert(execution);
        }
        if is_whole && !meant.is_empty() || meant.len() > LISTED_MAX {
            break;
        }
    }
    let listed: Vec<&str> = meant.iter().take(LISTED_MAX).map(String::as_str).collect();
    match listed[..] {
        [] => {
            Err(format!("the audit log in {} has no execution {}", directory.display(), printable(prefix))
                .into())
        }
        [one] => Ok(one.to_owned()),
        _ => Err(format!("several executions begin so: {}", listed.join(", ")).into()),
    }
}
