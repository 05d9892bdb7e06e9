//! `lockhouse audit head`: prints the present end of the audit log, signed, for a witness.

use std::process::ExitCode;

use lockhouse_audit::{AuditSettings, HeadSegment, LogHead};

use super::CommandResult;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Print as JSON, in one line, which `audit verify --head` reads
    #[arg(long)]
    json: bool,
}

pub(super) fn head(settings: &AuditSettings, arguments: &Arguments) -> CommandResult {
    let head = LogHead::read(&settings.directory, &settings.keys)?;
    if arguments.json {
        println!("{}", serde_json::to_string(&head)?);
        return Ok(ExitCode::SUCCESS);
    }
    let LogHead { time, lines, hash, segments, key, .. } = head;
    println!("{time}  index: {lines} lines, the last with the hash {hash}");
    for HeadSegment { segment, seq, hash } in segments {
        println!("{segment}: record {seq} with the hash {hash}");
    }
    println!("key {key}");
    Ok(ExitCode::SUCCESS)
}
