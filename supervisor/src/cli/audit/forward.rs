//! `lockhouse audit forward`: shows how far the log is delivered to each destination.

use std::process::ExitCode;

use lockhouse_audit::AuditSettings;
use lockhouse_audit_forward::report::{DestinationReport, report};
use lockhouse_config::{self as config, Files};
use lockhouse_policies::printable;
use serde_json::json;

use super::CommandResult;
use crate::cli::line_width::wrap_line;

/// The indentation of the wrapped part of a line.
const WRAPPED_INDENT: &str = "    ";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Prints a line for each destination. The exit status is 1 if calls are refused because a destination is behind, or if a
/// destination cannot be reached.
pub(super) fn forward(files: &Files, audit: &AuditSettings, arguments: &Arguments) -> CommandResult {
    let settings = config::load_forward_settings(files)?;
    let reports = report(&settings)?;
    if arguments.json {
        println!("{:#}", json!(reports));
    } else if reports.is_empty() {
        println!("The configuration names no destination: see forward in [audit].");
    } else {
        for report in &reports {
            println!("{}", wrap_line(&printable(&describe(report)), WRAPPED_INDENT));
        }
    }
    let within = audit.forward_within.map(|within| within.as_secs_f64());
    let is_late = |report: &DestinationReport| within.is_some_and(|within| report.lag_s > within);
    let is_faulty = reports.iter().any(|report| report.error.is_some() || is_late(report));
    Ok(if is_faulty { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn describe(report: &DestinationReport) -> String {
    let DestinationReport { destination, lag_s, undelivered_segments, pid, delivered, error, failing_since } =
        report;
    let behind = match undelivered_segments {
        0 => "all records delivered".to_owned(),
        segments => format!("{lag_s:.0} s behind, with records of {segments} segments"),
    };
    let last = delivered.as_ref().map(|time| format!(", last delivery {time}")).unwrap_or_default();
    let by = match pid {
        Some(pid) => format!(", forwarded by process {pid}"),
        None => ", no process forwards it now".to_owned(),
    };
    let since = failing_since.as_ref().map(|time| format!(" since {time}")).unwrap_or_default();
    let error = error.as_ref().map(|error| format!("; failing{since}: {error}")).unwrap_or_default();
    format!("{destination}: {behind}{last}{by}{error}")
}
