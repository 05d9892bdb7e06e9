//! `lockhouse audit show`: shows all audit records of one run, with its code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use lockhouse_audit::program_store::{ProgramComparison, ProgramRecord, compare};
use lockhouse_audit::reader::{Filter, LocatedRecord, ReadError, records};
use lockhouse_audit::verify::{LogLocation, TrustedKey, verify};
use lockhouse_audit::{AuditEvent, AuditSettings, SegmentName, public_keys};
use lockhouse_policies::printable;

use super::CommandResult;
use super::record_line::{format_execution_record, format_time};
use super::verify::TAMPERED;
use crate::cli::id_prefix::{LISTED_MAX, Match, find_by_prefix, list_candidates};
use crate::cli::line_width::wrap_line;

/// The minimum length of a run's id prefix in characters: a shorter prefix matches too many runs.
const EXECUTION_CHARS_MIN: usize = 4;
const EXECUTION_CHARS: usize = 36;
/// The indentation of wrapped lines about the run: the width of the longest name and of the space after it.
const HEAD_INDENT: &str = "           ";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The id of the run, or a prefix of it
    execution: String,
    /// Print the records as JSON, as they are stored, with names in place of their ids
    #[arg(long)]
    json: bool,
}

pub(super) fn show(settings: &AuditSettings, arguments: &Arguments) -> CommandResult {
    let directory = &settings.directory;
    let execution = resolve_execution(directory, &arguments.execution.to_lowercase())?;
    let filter =
        Filter { execution: Some(execution.clone()), since: start_time(&execution), ..Filter::default() };
    let (mut start, mut is_genuine) = (None, true);
    let mut segments = BTreeSet::new();
    for found in records(directory, &filter)? {
        segments.insert(found?.segment);
    }
    // The warning comes first, since a modified log makes all that follows untrustworthy.
    for segment in segments.iter().filter(|segment| !is_intact(settings, segment)) {
        let message = format!(
            "WARNING: {segment} was MODIFIED after it was written; `lockhouse audit verify` shows what was changed"
        );
        warn(&message, arguments.json);
        is_genuine = false;
    }
    for found in records(directory, &filter)? {
        let found = found?;
        let time = humantime::parse_rfc3339(&found.record.time).unwrap_or(SystemTime::UNIX_EPOCH);
        let start = *start.get_or_insert(time);
        if arguments.json {
            println!("{}", found.text);
            let warning = recorded_program(directory, &found).and_then(|kept| warning(&kept));
            warning.iter().for_each(|warning| warn(warning, true));
            is_genuine &= warning.is_none();
            continue;
        }
        let since = time.duration_since(start).unwrap_or_default().as_secs_f64() * 1000.0;
        is_genuine &= print_record(directory, &found, since);
    }
    Ok(if is_genuine { ExitCode::SUCCESS } else { ExitCode::from(TAMPERED) })
}

/// Prints a warning. With `for_programs`, standard output is JSON, so the warning goes to standard error instead of
/// standard output.
fn warn(warning: &str, for_programs: bool) {
    match for_programs {
        true => eprintln!("lockhouse: {warning}"),
        false => println!("{warning}"),
    }
}

/// Prints one audit record of the run, `since_ms` milliseconds after the run began. Returns false if the stored program
/// of the record was replaced or removed, or cannot be read.
fn print_record(directory: &Path, found: &LocatedRecord, since_ms: f64) -> bool {
    let AuditEvent::Execution {
        execution, client, language, servers, code, code_bytes, policy, claimed, ..
    } = &found.record.event
    else {
        if let Some(row) = format_execution_record(&found.record, since_ms) {
            println!("{row}");
        }
        let kept = recorded_program(directory, found);
        let warning = kept.as_ref().and_then(warning);
        warning.iter().for_each(|warning| println!("{warning}"));
        return warning.is_none();
    };
    println!("execution  {}", printable(execution));
    println!("began      {} UTC", format_time(&found.record.time));
    println!("from       {}", printable(client.as_deref().unwrap_or("the command line")));
    println!("{}", wrap_line(&format!("servers    {}", printable(&servers.join(", "))), HEAD_INDENT));
    if let Some(policy) = policy {
        println!("{}", wrap_line(&format!("policy     SHA-256 {}", printable(policy)), HEAD_INDENT));
    }
    for (name, claim) in claimed {
        println!(
            "{}",
            wrap_line(&format!("claimed    {} {}", printable(name), printable(claim)), HEAD_INDENT)
        );
    }
    let code = format!("code       {}, {code_bytes} bytes, SHA-256 {}", printable(language), printable(code));
    println!("{}\n", wrap_line(&code, HEAD_INDENT));
    let Some(kept) = recorded_program(directory, found) else { return true };
    print_code(&kept)
}

/// Compares the stored program of an audit record with the hash in the record. Returns `None` for a record of a kind
/// that has no program.
fn recorded_program(directory: &Path, found: &LocatedRecord) -> Option<std::io::Result<ProgramComparison>> {
    let (language, code, kept) = match &found.record.event {
        AuditEvent::Execution { language, code, code_kept, .. }
        | AuditEvent::Skill { language, code, code_kept, .. } => (language, code, code_kept.as_deref()),
        _ => return None,
    };
    Some(compare(directory, ProgramRecord { language, code, kept }))
}

/// Returns a warning if a stored program was replaced or removed, or cannot be read; otherwise `None`.
fn warning(kept: &std::io::Result<ProgramComparison>) -> Option<String> {
    let message = match kept {
        Ok(
            ProgramComparison::Genuine(_)
            | ProgramComparison::Redacted(_)
            | ProgramComparison::Unverifiable(_)
            | ProgramComparison::Absent,
        ) => return None,
        Ok(ProgramComparison::Replaced { file, found }) => {
            format!("{} is NOT the program that ran: {found}; its text is not shown", file.display())
        }
        Ok(ProgramComparison::Removed { file }) => {
            format!("the program that ran was stored in {}, which has been removed", file.display())
        }
        Err(error) => format!("the program cannot be read: {error}"),
    };
    Some(printable(&format!("WARNING: {message}")))
}

/// Prints the stored program of a run. Returns false if the program was replaced or removed, or cannot be read.
fn print_code(kept: &std::io::Result<ProgramComparison>) -> bool {
    match kept {
        Ok(ProgramComparison::Genuine(text)) => print_numbered(text),
        Ok(ProgramComparison::Redacted(text)) => {
            println!("The program that ran, with secrets of the configuration redacted:\n");
            print_numbered(text);
        }
        Ok(ProgramComparison::Unverifiable(text)) => {
            println!(
                "NOT VERIFIED: secrets were redacted from this text, and its record has no hash of the redacted text:\n"
            );
            print_numbered(text);
        }
        Ok(ProgramComparison::Absent) => {
            println!("The code was not stored, or its retention period is over.\n")
        }
        Ok(ProgramComparison::Replaced { .. } | ProgramComparison::Removed { .. }) | Err(_) => {}
    }
    let warning = warning(kept);
    warning.iter().for_each(|warning| println!("{warning}\n"));
    warning.is_none()
}

fn print_numbered(text: &str) {
    for (number, line) in text.lines().enumerate() {
        println!("{:>6}  {}", number + 1, printable(line));
    }
    println!();
}

/// Whether the hash chain and signatures of an audit log segment are valid. Without the public key they cannot be
/// verified, and the segment counts as intact.
fn is_intact(settings: &AuditSettings, segment: &SegmentName) -> bool {
    if public_keys(&settings.keys).is_ok_and(|keys| keys.is_empty()) {
        return true;
    }
    let trust = TrustedKey::Local { keys: &settings.keys, log: &settings.directory }.into();
    let path = settings.directory.join(segment.as_str());
    match verify(&path, LogLocation::ChainOnly, &trust, &mut |_| {}) {
        Ok(verified) => verified.faults == 0,
        Err(error) => {
            eprintln!("lockhouse: {error}");
            false
        }
    }
}

/// Returns the start time that a run's id (a UUIDv7) contains, minus one second of tolerance. `None` if the id is not
/// such a UUID.
fn start_time(execution: &str) -> Option<SystemTime> {
    let id = uuid::Uuid::parse_str(execution).ok()?;
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let since = Duration::new(seconds, nanos).checked_sub(Duration::from_secs(1))?;
    SystemTime::UNIX_EPOCH.checked_add(since)
}

/// Why a prefix of a run's id does not identify exactly one run.
#[derive(Debug, thiserror::Error)]
enum ResolveError {
    #[error("give at least {EXECUTION_CHARS_MIN} characters of the run's id")]
    TooShort,
    #[error("the audit log in {directory} has no run {}", printable(.prefix))]
    None { directory: PathBuf, prefix: String },
    #[error("several runs match; give more characters of the id of one: {}", list_candidates(.candidates))]
    Ambiguous { candidates: Vec<String> },
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// Returns the full id of the one run whose id starts with `prefix`.
fn resolve_execution(directory: &Path, prefix: &str) -> Result<String, ResolveError> {
    if prefix.len() < EXECUTION_CHARS_MIN {
        return Err(ResolveError::TooShort);
    }
    let is_whole = prefix.len() == EXECUTION_CHARS;
    let since = if is_whole { start_time(prefix) } else { None };
    let filter = Filter { execution: Some(prefix.to_owned()), since, ..Filter::default() };
    let mut matches = BTreeSet::new();
    for found in records(directory, &filter)? {
        if let AuditEvent::Execution { execution, .. } | AuditEvent::Refusal { execution, .. } =
            found?.record.event
        {
            matches.insert(execution);
        }
        if is_whole && !matches.is_empty() || matches.len() > LISTED_MAX {
            break;
        }
    }
    let matches: Vec<String> = matches.into_iter().collect();
    match find_by_prefix(&matches, prefix, Clone::clone) {
        Match::One(execution) => Ok(execution),
        Match::None => Err(ResolveError::None { directory: directory.to_owned(), prefix: prefix.to_owned() }),
        Match::Ambiguous(candidates) => Err(ResolveError::Ambiguous { candidates }),
    }
}
