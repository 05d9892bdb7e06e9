//! `lockhouse audit verify`

use std::path::PathBuf;
use std::process::ExitCode;

use lockhouse_policies::printable;

use super::Done;
use crate::audit::verify::{Finding, Kind};
use crate::audit::{AuditSettings, PublicKey, verify as audit_verify};
use crate::cli::USAGE;

/// The log is not as it was written.
const TAMPERED: u8 = 1;
/// Findings of each kind that are printed.
const TOLD_MAX: u64 = 200;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The public key, as `audit key` printed it; without it the one of this user counts
    #[arg(long, value_name = "HEX")]
    key: Option<String>,
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
    let path = arguments.path.as_ref().unwrap_or(&settings.directory);
    let (mut faults, mut notes) = (0, 0);
    let verified = audit_verify::verify(path, &key, &mut |finding| {
        let count = match finding.kind {
            Kind::Fault => &mut faults,
            Kind::Note => &mut notes,
        };
        *count += 1;
        if *count <= TOLD_MAX {
            println!("{}", told(&finding));
        }
    })?;
    for (count, kind) in [(faults, "faults"), (notes, "notes")] {
        if count > TOLD_MAX {
            println!("and {} more {kind}", count - TOLD_MAX);
        }
    }
    println!(
        "{}: {} segments, {} records, {} of them after the last signature of their segment; {} faults; key {}",
        if verified.faults == 0 { "verified" } else { "NOT as it was written" },
        verified.segments,
        verified.records,
        verified.unsigned,
        verified.faults,
        key.to_hex()
    );
    Ok(if verified.faults == 0 { ExitCode::SUCCESS } else { ExitCode::from(TAMPERED) })
}

/// `FAULT  FILE:LINE  record SEQ  WHAT`
fn told(finding: &Finding) -> String {
    let Finding { kind, file, line, seq, what } = finding;
    let kind = match kind {
        Kind::Fault => "FAULT",
        Kind::Note => "note ",
    };
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    let seq = seq.map(|seq| format!("  record {seq}")).unwrap_or_default();
    printable(&format!("{kind}  {file}{line}{seq}  {what}"))
}
