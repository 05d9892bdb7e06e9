//! `lockhouse audit verify`: verifies that no record of the audit log was changed, dropped, inserted, moved or removed.

use std::cell::RefCell;
use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lockhouse_audit::reader::ReadError;
use lockhouse_audit::verify::{Finding, FindingKind, LogLocation, Trust, TrustedKey, VerificationSummary};
use lockhouse_audit::{AuditSettings, LogHead, PublicKey, public_keys, verify as audit_verify};
use lockhouse_base::audit_files::{INDEX, INDEX_LINE_BYTES_MAX};
use lockhouse_policies::printable;
use serde_json::{Value, json};

use super::CommandResult;
use crate::cli::USAGE;

/// The exit status when the audit log or a stored program was modified.
pub(super) const TAMPERED: u8 = 1;
/// The maximum number of findings of each kind (faults, notes) that are printed.
const PRINTED_MAX: u64 = 200;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The public key that `audit key` printed, at any time [default: the key of this user]
    #[arg(long, value_name = "HEX")]
    key: Option<String>,
    /// An earlier head, the output of `audit head --json`, which the log must contain
    #[arg(long, value_name = "FILE")]
    head: Option<PathBuf>,
    /// The public key of an administrator, who countersigned new keys after a loss; may be given several times
    #[arg(long, value_name = "HEX")]
    administrator: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// An audit log directory, or one file of it [default: the configured directory]
    path: Option<PathBuf>,
}

pub(super) fn verify(settings: &AuditSettings, arguments: &Arguments) -> CommandResult {
    let parse = |hex: &String| PublicKey::from_hex(hex);
    let stored: Option<Vec<PublicKey>> = arguments.key.iter().map(parse).collect();
    let administrators: Option<Vec<PublicKey>> = arguments.administrator.iter().map(parse).collect();
    let (Some(stored), Some(administrators)) = (stored, administrators) else {
        eprintln!(
            "lockhouse: --key and --administrator take 64 hexadecimal digits, as `lockhouse audit key` prints them"
        );
        return Ok(ExitCode::from(USAGE));
    };
    let key = match stored.first() {
        Some(key) => TrustedKey::Stored(key),
        None => own_key(settings)?,
    };
    let head = arguments.head.as_deref().map(LogHead::from_file).transpose()?;
    let trust = Trust { key, administrators: &administrators, head: head.as_ref() };
    // The configured directory must be complete. A part or a copy may lack the stored programs.
    let (path, place) = match &arguments.path {
        Some(path) => (path, LogLocation::Copy),
        None => (&settings.directory, LogLocation::Original),
    };
    let (verified, faults, notes) = verify_log(path, place, &trust, |finding| {
        if !arguments.json {
            println!("{}", finding_line(finding));
        }
    })?;
    match arguments.json {
        true => println!("{:#}", summary_json(&verified, faults, notes, stored.first())),
        false => print_summary(&verified, &faults, &notes, stored.first()),
    }
    Ok(if verified.faults == 0 { ExitCode::SUCCESS } else { ExitCode::from(TAMPERED) })
}

/// Verifies the configured audit log with the key of this user. Returns the result as JSON.
pub(in crate::cli) fn verify_own_log(settings: &AuditSettings) -> Result<Value, Box<dyn Error>> {
    let trust = own_key(settings)?.into();
    let (verified, faults, notes) = verify_log(&settings.directory, LogLocation::Original, &trust, |_| {})?;
    Ok(summary_json(&verified, faults, notes, None))
}

/// The result of the verification of a copy.
pub(in crate::cli) struct VerifiedCopy {
    pub(in crate::cli) segments: u64,
    pub(in crate::cli) records: u64,
    /// Number of records after the last signature of their segment.
    pub(in crate::cli) unsigned: u64,
    /// The first [`PRINTED_MAX`] faults, a line each.
    pub(in crate::cli) faults: Vec<String>,
}

/// Verifies a copy of a log, whose first line nobody could change after it was copied: the key in it is trusted.
///
/// # Errors
/// The copy cannot be read.
pub(in crate::cli) fn verify_copy(folder: &Path) -> Result<VerifiedCopy, Box<dyn Error>> {
    let faults = RefCell::new(Vec::new());
    let Some(key) = first_key(&folder.join(INDEX))? else {
        let fault = format!("FAULT  {INDEX}  the copy has no index with a key");
        return Ok(VerifiedCopy { segments: 0, records: 0, unsigned: 0, faults: vec![fault] });
    };
    let trust = TrustedKey::Stored(&key).into();
    let (verified, ..) = verify_log(folder, LogLocation::Copy, &trust, |finding| {
        if finding.kind == FindingKind::Fault {
            faults.borrow_mut().push(finding_line(finding));
        }
    })?;
    let VerificationSummary { segments, records, unsigned, .. } = verified;
    Ok(VerifiedCopy { segments, records, unsigned, faults: faults.into_inner() })
}

/// Returns the key of the first line of an index. `None` if it has none.
fn first_key(index: &Path) -> std::io::Result<Option<PublicKey>> {
    let mut line = String::new();
    match std::fs::File::open(index) {
        Ok(file) => BufReader::new(file.take(INDEX_LINE_BYTES_MAX)).read_line(&mut line)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let line: Value = serde_json::from_str(&line).unwrap_or_default();
    Ok(line["key"].as_str().and_then(PublicKey::from_hex))
}

fn own_key(settings: &AuditSettings) -> Result<TrustedKey<'_>, Box<dyn Error>> {
    let AuditSettings { keys, directory, .. } = settings;
    if public_keys(keys)?.is_empty() {
        return Err(
            "there is no key to verify with: pass the key that `lockhouse audit key` printed with --key"
                .into(),
        );
    }
    Ok(TrustedKey::Local { keys, log: directory })
}

/// Returns the key that a verification is reported with: the stored key, or the key of the log itself, in hexadecimal.
fn shown_key(verified: &VerificationSummary, stored: Option<&PublicKey>) -> String {
    stored.or(verified.key.as_ref()).map(PublicKey::to_hex).unwrap_or_default()
}

/// Verifies a log, and returns the result with the faults and the notes. Calls `show` for the first [`PRINTED_MAX`]
/// findings of each kind.
fn verify_log(
    path: &Path,
    place: LogLocation,
    trust: &Trust<'_>,
    show: impl Fn(&Finding),
) -> Result<(VerificationSummary, Findings, Findings), ReadError> {
    let (mut faults, mut notes) = (Findings::default(), Findings::default());
    let verified = audit_verify::verify(path, place, trust, &mut |finding| {
        let findings = match finding.kind {
            FindingKind::Fault => &mut faults,
            FindingKind::Note => &mut notes,
        };
        findings.count += 1;
        if findings.count <= PRINTED_MAX {
            show(&finding);
            findings.json.push(finding_to_json(&finding));
        }
    })?;
    Ok((verified, faults, notes))
}

/// The findings of one kind (faults or notes): their number and the first [`PRINTED_MAX`] findings as JSON.
#[derive(Default)]
struct Findings {
    count: u64,
    json: Vec<Value>,
}

/// Returns the result of the verification, as `state` in the JSON output: "empty", "verified" or "faults".
fn state(verified: &VerificationSummary) -> &'static str {
    match (verified.faults, verified.segments) {
        (0, 0) => "empty",
        (0, _) => "verified",
        _ => "faults",
    }
}

fn summary_json(
    verified: &VerificationSummary,
    faults: Findings,
    notes: Findings,
    stored: Option<&PublicKey>,
) -> Value {
    let VerificationSummary { segments, records, programs, unsigned, .. } = verified;
    json!({
        "state": state(verified), "segments": segments, "records": records, "unsigned": unsigned,
        "programs": programs, "key": shown_key(verified, stored),
        "fault_count": faults.count, "faults": faults.json, "note_count": notes.count, "notes": notes.json,
    })
}

fn print_summary(
    verified: &VerificationSummary,
    faults: &Findings,
    notes: &Findings,
    stored: Option<&PublicKey>,
) {
    for (findings, kind) in [(faults, "faults"), (notes, "notes")] {
        if findings.count > PRINTED_MAX {
            println!("and {} more {kind}", findings.count - PRINTED_MAX);
        }
    }
    println!(
        "{}: {} segments, {} records, {} of them after the last signature of their segment; {} programs; {} faults; key {}",
        match state(verified) {
            "empty" => "EMPTY, nothing was verified",
            "verified" => "verified",
            _ => "MODIFIED",
        },
        verified.segments,
        verified.records,
        verified.unsigned,
        verified.programs,
        verified.faults,
        shown_key(verified, stored)
    );
}

fn finding_to_json(finding: &Finding) -> Value {
    let Finding { file, line, seq, what, .. } = finding;
    json!({"file": file, "line": line, "record": seq, "what": what})
}

/// Formats a finding as one line: `FAULT  FILE:LINE  record SEQ  WHAT`.
fn finding_line(finding: &Finding) -> String {
    let Finding { kind, file, line, seq, what } = finding;
    let kind = match kind {
        FindingKind::Fault => "FAULT",
        FindingKind::Note => "note ",
    };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let seq = seq.map(|seq| format!("  record {seq}")).unwrap_or_default();
    printable(&format!("{kind}  {file}{line}{seq}  {what}"))
}
