//! `lockhouse audit export`: exports records of the audit log for other systems, one JSON object per line.

use std::path::Path;
use std::process::ExitCode;

use lockhouse_audit::ocsf::OcsfEvents;

use super::CommandResult;
use super::filter_options::FilterOptions;
use super::matching_records::matching_records;
use crate::cli::{USAGE, output, print_error};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The output format
    #[arg(long)]
    format: Format,
    #[command(flatten)]
    filter: FilterOptions,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Open Cybersecurity Schema Framework: events of the class API Activity (6003), one JSON object per line
    Ocsf,
}

pub(super) fn export(directory: &Path, arguments: &Arguments) -> CommandResult {
    let Format::Ocsf = arguments.format;
    let filter = match arguments.filter.to_filter() {
        Ok(filter) => filter,
        Err(error) => return Ok(print_error(&error, USAGE)),
    };
    let (mut events, mut is_empty) = (OcsfEvents::default(), true);
    for found in matching_records(directory, &filter)? {
        is_empty = false;
        for event in events.add(found?) {
            println!("{event}");
        }
        if output::is_closed() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if is_empty {
        return Ok(arguments.filter.report_no_match(directory)?);
    }
    for event in events.finish() {
        println!("{event}");
    }
    Ok(ExitCode::SUCCESS)
}
