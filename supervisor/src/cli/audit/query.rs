//! `lockhouse audit query`: shows the audit records that match the given options, oldest first.

use std::path::Path;
use std::process::ExitCode;

use lockhouse_audit::reader::LocatedRecord;

use super::CommandResult;
use super::filter_options::FilterOptions;
use super::matching_records::matching_records;
use super::record_line::format_record;
use crate::cli::{USAGE, output, print_error};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    filter: FilterOptions,
    /// Print the records as JSON, as they are stored, with names in place of their ids
    #[arg(long)]
    json: bool,
}

pub(super) fn query(directory: &Path, arguments: &Arguments) -> CommandResult {
    let filter = match arguments.filter.to_filter() {
        Ok(filter) => filter,
        Err(error) => return Ok(print_error(&error, USAGE)),
    };
    let mut is_empty = true;
    for found in matching_records(directory, &filter)? {
        is_empty &= !print_record(&found?, arguments.json);
        if output::is_closed() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    match is_empty {
        true => Ok(arguments.filter.report_no_match(directory)?),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Prints an audit record, as a readable line or as the stored JSON. Returns false if nothing was printed: a `chain`
/// record, which is bookkeeping of the log itself, has no readable line.
pub(super) fn print_record(found: &LocatedRecord, json: bool) -> bool {
    if json {
        println!("{}", found.text);
        return true;
    }
    let row = format_record(&found.record);
    row.inspect(|row| println!("{row}")).is_some()
}
