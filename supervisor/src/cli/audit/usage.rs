//! `lockhouse usage`: how much each AI client has used, or all of them on each day, from the audit log.

mod csv;
mod totals;

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use lockhouse_audit::reader::Filter;
use serde_json::json;

use super::CommandResult;
use super::filter_options::{parse_time, report_no_records};
use super::matching_records::matching_records;
use crate::cli::table;
use totals::{Totals, Usage};

/// Options of `lockhouse usage`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// What each line is about
    #[arg(long, value_enum, default_value_t)]
    by: Subject,
    /// Only what this AI client used
    #[arg(long)]
    client: Option<String>,
    /// From this time on: 2026-01-31, 2026-01-31T12:00:00Z, or an age such as 2h or 7d
    #[arg(long, value_parser = parse_time)]
    since: Option<SystemTime>,
    /// Up to this time, in the formats of --since
    #[arg(long, value_parser = parse_time)]
    until: Option<SystemTime>,
    /// Print as JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print as CSV (RFC 4180)
    #[arg(long)]
    csv: bool,
}

/// What a line of the report is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Subject {
    #[default]
    Client,
    /// A day in UTC
    Day,
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Day => "day",
        }
    }
}

/// The columns after the subject, in the order of [`cells`]: their names in a table, which fits into 80 columns, and in CSV.
const COLUMNS: [(&str, &str); 9] = [
    ("runs", "runs"),
    ("failed", "failed"),
    ("refused", "refused"),
    ("calls", "calls"),
    ("errors", "failed_calls"),
    ("denied", "denied"),
    ("CPU s", "cpu_s"),
    ("wall s", "wall_s"),
    ("kept out", "tokens_kept_out"),
];

pub(super) fn usage(directory: &Path, arguments: &Arguments) -> CommandResult {
    let filter = Filter {
        // Not the client: the end of a run does not name it.
        since: arguments.since,
        until: arguments.until,
        ..Filter::default()
    };
    let mut totals = Totals::new(arguments.by == Subject::Day, arguments.client.clone());
    for found in matching_records(directory, &filter)? {
        totals.add(&found?.record);
    }
    let rows = totals.rows();
    if arguments.json {
        println!(
            "{:#}",
            rows.iter()
                .map(|(name, usage)| to_json(arguments.by, name, usage))
                .collect::<serde_json::Value>()
        );
    } else if arguments.csv {
        print!(
            "{}",
            csv::lines(
                arguments.by.name(),
                &COLUMNS.map(|(_, name)| name),
                &rows.iter().map(cells).collect::<Vec<_>>()
            )
        );
    } else if rows.is_empty() {
        report_no_records();
    } else {
        let head: Vec<&str> =
            std::iter::once(arguments.by.name()).chain(COLUMNS.map(|(name, _)| name)).collect();
        println!("{}", table::render(&head, &rows.iter().map(cells).collect::<Vec<_>>()));
    }
    Ok(ExitCode::SUCCESS)
}

fn cells((name, usage): &(String, Usage)) -> Vec<String> {
    let Usage { runs, failed, refused, calls, failed_calls, denied, cpu_ms, wall_ms, .. } = usage;
    let counts = [runs, failed, refused, calls, failed_calls, denied].map(u64::to_string);
    let times = [cpu_ms, wall_ms].map(|ms| format!("{:.1}", ms / 1000.0));
    let tokens = usage.tokens_kept_out().to_string();
    std::iter::once(name.clone()).chain(counts).chain(times).chain([tokens]).collect()
}

fn to_json(by: Subject, name: &str, usage: &Usage) -> serde_json::Value {
    let Usage { runs, failed, refused, calls, failed_calls, denied, cpu_ms, wall_ms, .. } = usage;
    json!({
        by.name(): name, "runs": runs, "failed": failed, "refused": refused, "calls": calls, "failed_calls": failed_calls,
        "denied": denied, "cpu_s": cpu_ms / 1000.0, "wall_s": wall_ms / 1000.0, "result_bytes": usage.result_bytes,
        "answer_bytes": usage.answer_bytes, "tokens_kept_out": usage.tokens_kept_out(),
    })
}
