//! `lockhouse audit verify`

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_audit::verify::{Finding, Kind, Place, Verified};
use lockhouse_audit::{AuditSettings, PublicKey, verify as audit_verify};
use lockhouse_policies::printable;
use serde_json::{Value, json};

use super::Done;
use crate::cli::USAGE;

/// The log is not as it was written.
pub(super) const TAMPERED: u8 = 1;
/// Findings of each kind that are printed.
const TOLD_MAX: u64 = 200;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The public key, as `audit key` printed it; without it the one of this user counts
    #[arg(long, value_name = "HEX")]
    key: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
    /// A directory with an audit log, or one of its files [default: the one that is configured]
    path: Option<PathBuf>,
}

pub(super) fn verify(settings: &AuditSettings, arguments: &Arguments) -> Done {
    let key = match &arguments.key {
        Some(hex) => match PublicKey::from_hex(hex) {
            Some(key) => key,
            None => {
                eprintln!(
                    "lockhouse: --key takes the 64 hexadecimal digits that `lockhouse audit key` prints"
                );
                return Ok(ExitCode::from(USAGE));
            }
        },
        None => PublicKey::of(&settings.keys)?.ok_or(
            "there is no key to verify with: give the one that `lockhouse audit key` printed, with --key",
        )?,
    };
    // Where it is written everything must be there; a part or a copy may be without programs.
    let (path, place) = match &arguments.path {
        Some(path) => (path, Place::Copy),
        None => (&settings.directory, Place::Home),
    };
    let (mut faults, mut notes) = (Told::default(), Told::default());
    let verified = audit_verify::verify(path, place, &key, &mut |finding| {
        let told = match finding.kind {
            Kind::Fault => &mut faults,
            Kind::Note => &mut notes,
        };
        told.count += 1;
        if told.count > TOLD_MAX {
            return;
        }
        match arguments.json {
            true => told.json.push(as_json(&finding)),
            false => println!("{}", told_line(&finding)),
        }
    })?;
    match arguments.json {
        true => println!("{:#}", summary_json(&verified, faults, notes, &key)),
        false => print_summary(&verified, &faults, &notes, &key),
    }
    Ok(if verified.faults == 0 { ExitCode::SUCCESS } else { ExitCode::from(TAMPERED) })
}

/// Findings of one kind.
#[derive(Default)]
struct Told {
    count: u64,
    json: Vec<Value>,
}

/// What the log is, in one word for programs.
fn state(verified: &Verified) -> &'static str {
    match (verified.faults, verified.segments) {
        (0, 0) => "empty",
        (0, _) => "verified",
        _ => "faults",
    }
}

fn summary_json(verified: &Verified, faults: Told, notes: Told, key: &PublicKey) -> Value {
    let Verified { segments, records, programs, unsigned, .. } = verified;
    json!({
        "state": state(verified), "segments": segments, "records": records, "unsigned": unsigned,
        "programs": programs, "key": key.to_hex(),
        "fault_count": faults.count, "faults": faults.json, "note_count": notes.count, "notes": notes.json,
    })
}

fn print_summary(verified: &Verified, faults: &Told, notes: &Told, key: &PublicKey) {
    for (told, kind) in [(faults, "faults"), (notes, "notes")] {
        if told.count > TOLD_MAX {
            println!("and {} more {kind}", told.count - TOLD_MAX);
        }
    }
    println!(
        "{}: {} segments, {} records, {} of them after the last signature of their segment; {} programs; {} faults; key {}",
        match state(verified) {
            "empty" => "EMPTY, nothing was verified",
            "verified" => "verified",
            _ => "NOT as it was written",
        },
        verified.segments,
        verified.records,
        verified.unsigned,
        verified.programs,
        verified.faults,
        key.to_hex()
    );
}

fn as_json(finding: &Finding) -> Value {
    let Finding { file, line, seq, what, .. } = finding;
    json!({"file": file, "line": line, "record": seq, "what": what})
}

/// `FAULT  FILE:LINE  record SEQ  WHAT`
fn told_line(finding: &Finding) -> String {
    let Finding { kind, file, line, seq, what } = finding;
    let kind = match kind {
        Kind::Fault => "FAULT",
        Kind::Note => "note ",
    };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let seq = seq.map(|seq| format!("  record {seq}")).unwrap_or_default();
    printable(&format!("{kind}  {file}{line}{seq}  {what}"))
}
