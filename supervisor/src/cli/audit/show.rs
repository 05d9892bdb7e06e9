//! `lockhouse audit show`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use lockhouse_audit::code::{Kept, Recorded, compare};
use lockhouse_audit::read::{Filter, Found, ReadError, records};
use lockhouse_audit::verify::{Place, verify};
use lockhouse_audit::{AuditSettings, Event, PublicKey, SegmentName};
use lockhouse_policies::printable;

use super::Done;
use super::row::{shown_time, story_row};
use super::verify::TAMPERED;

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

pub(super) fn show(settings: &AuditSettings, arguments: &Arguments) -> Done {
    let directory = &settings.directory;
    let execution = the_one(directory, &arguments.execution.to_lowercase())?;
    let filter = Filter { execution: Some(execution.clone()), since: began(&execution), ..Filter::default() };
    let (mut start, mut is_genuine) = (None, true);
    let mut segments = BTreeSet::new();
    for found in records(directory, &filter)? {
        segments.insert(found?.segment);
    }
    // First: whatever is said after it is said by a log that somebody changed.
    for segment in segments.iter().filter(|segment| !is_as_written(settings, segment)) {
        let told = format!(
            "WARNING: {segment} is NOT as it was written; `lockhouse audit verify` says what was changed"
        );
        warn(&told, arguments.json);
        is_genuine = false;
    }
    for found in records(directory, &filter)? {
        let found = found?;
        let time = humantime::parse_rfc3339(&found.record.time).unwrap_or(SystemTime::UNIX_EPOCH);
        let start = *start.get_or_insert(time);
        if arguments.json {
            println!("{}", found.text);
            let warning = program_of(directory, &found).and_then(|kept| warning(&kept));
            warning.iter().for_each(|warning| warn(warning, true));
            is_genuine &= warning.is_none();
            continue;
        }
        let since = time.duration_since(start).unwrap_or_default().as_secs_f64() * 1000.0;
        is_genuine &= print(directory, &found, since);
    }
    Ok(if is_genuine { ExitCode::SUCCESS } else { ExitCode::from(TAMPERED) })
}

/// Beside what it is about, or on standard error where standard output is for programs.
fn warn(warning: &str, for_programs: bool) {
    match for_programs {
        true => eprintln!("lockhouse: {warning}"),
        false => println!("{warning}"),
    }
}

/// One record of the story. Whether the program that it is about, if any, is the one that ran.
fn print(directory: &Path, found: &Found, since_ms: f64) -> bool {
    let Event::Execution { execution, client, language, servers, code, code_bytes, policy, .. } =
        &found.record.event
    else {
        if let Some(row) = story_row(&found.record, since_ms) {
            println!("{row}");
        }
        let kept = program_of(directory, found);
        let warning = kept.as_ref().and_then(warning);
        warning.iter().for_each(|warning| println!("{warning}"));
        return warning.is_none();
    };
    println!("execution  {}", printable(execution));
    println!("began      {} UTC", shown_time(&found.record.time));
    println!("from       {}", printable(client.as_deref().unwrap_or("the command line")));
    println!("servers    {}", printable(&servers.join(", ")));
    if let Some(policy) = policy {
        println!("policy     SHA-256 {}", printable(policy));
    }
    println!("code       {}, {code_bytes} bytes, SHA-256 {}\n", printable(language), printable(code));
    let Some(kept) = program_of(directory, found) else { return true };
    print_code(&kept)
}

/// What the file is of the program that a record names, if it names one.
fn program_of(directory: &Path, found: &Found) -> Option<std::io::Result<Kept>> {
    let (language, code, kept) = match &found.record.event {
        Event::Execution { language, code, code_kept, .. }
        | Event::Skill { language, code, code_kept, .. } => (language, code, code_kept.as_deref()),
        _ => return None,
    };
    Some(compare(directory, Recorded { language, code, kept }))
}

/// What is wrong with the file of a program.
fn warning(kept: &std::io::Result<Kept>) -> Option<String> {
    let told = match kept {
        Ok(Kept::Genuine(_) | Kept::Redacted(_) | Kept::Unverifiable(_) | Kept::Absent) => return None,
        Ok(Kept::Replaced { file, found }) => {
            format!("{} is NOT the program that ran: {found}. It is not shown", file.display())
        }
        Ok(Kept::Removed { file }) => {
            format!("the program that ran was kept, and {} was removed", file.display())
        }
        Err(error) => format!("the program cannot be read: {error}"),
    };
    Some(printable(&format!("WARNING: {told}")))
}

/// Whether it is the program that ran.
fn print_code(kept: &std::io::Result<Kept>) -> bool {
    match kept {
        Ok(Kept::Genuine(text)) => numbered(text),
        Ok(Kept::Redacted(text)) => {
            println!("As it ran, but for secrets of the configuration:\n");
            numbered(text);
        }
        Ok(Kept::Unverifiable(text)) => {
            println!("NOT VERIFIED: this text is without secrets, and its record has no hash of it:\n");
            numbered(text);
        }
        Ok(Kept::Absent) => println!("The code was not kept, or not for so long.\n"),
        Ok(Kept::Replaced { .. } | Kept::Removed { .. }) | Err(_) => {}
    }
    let warning = warning(kept);
    warning.iter().for_each(|warning| println!("{warning}\n"));
    warning.is_none()
}

fn numbered(text: &str) {
    for (number, line) in text.lines().enumerate() {
        println!("{:>6}  {}", number + 1, printable(line));
    }
    println!();
}

/// Whether the segment that the story is from is as it was written. Without a key nobody can say.
fn is_as_written(settings: &AuditSettings, segment: &SegmentName) -> bool {
    let Ok(Some(key)) = PublicKey::of(&settings.keys) else { return true };
    let path = settings.directory.join(segment.as_str());
    match verify(&path, Place::ChainAlone, &key, &mut |_| {}) {
        Ok(verified) => verified.faults == 0,
        Err(error) => {
            eprintln!("lockhouse: {error}");
            false
        }
    }
}

/// When it was asked for, as its identifier says; a moment earlier.
fn began(execution: &str) -> Option<SystemTime> {
    let id = uuid::Uuid::parse_str(execution).ok()?;
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let since = Duration::new(seconds, nanos).checked_sub(Duration::from_secs(1))?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// Why the beginning of an identifier does not say which execution is meant.
#[derive(Debug, thiserror::Error)]
enum NotOne {
    #[error("give at least {EXECUTION_CHARS_MIN} characters of the identifier")]
    TooShort,
    #[error("the audit log in {directory} has no execution {}", printable(.prefix))]
    None { directory: PathBuf, prefix: String },
    #[error("several executions begin so: {}", .listed.join(", "))]
    Several { listed: Vec<String> },
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// The one execution whose identifier begins so.
fn the_one(directory: &Path, prefix: &str) -> Result<String, NotOne> {
    if prefix.len() < EXECUTION_CHARS_MIN {
        return Err(NotOne::TooShort);
    }
    let is_whole = prefix.len() == EXECUTION_CHARS;
    let since = if is_whole { began(prefix) } else { None };
    let filter = Filter { execution: Some(prefix.to_owned()), since, ..Filter::default() };
    let mut meant = BTreeSet::new();
    for found in records(directory, &filter)? {
        if let Event::Execution { execution, .. } | Event::Refusal { execution, .. } = found?.record.event {
            meant.insert(execution);
        }
        if is_whole && !meant.is_empty() || meant.len() > LISTED_MAX {
            break;
        }
    }
    let mut listed: Vec<String> = meant.into_iter().take(LISTED_MAX).collect();
    match (listed.pop(), listed.is_empty()) {
        (None, _) => Err(NotOne::None { directory: directory.to_owned(), prefix: prefix.to_owned() }),
        (Some(one), true) => Ok(one),
        (Some(last), false) => {
            listed.push(last);
            Err(NotOne::Several { listed })
        }
    }
}
