//! `lockhouse audit query`

use std::path::Path;
use std::process::ExitCode;

use super::row::row;
use super::{Done, Wanted};
use crate::audit::read::{Found, records};
use crate::cli::output;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Print the records as they are written
    #[arg(long)]
    json: bool,
}

pub(super) fn query(directory: &Path, arguments: &Arguments) -> Done {
    for found in records(directory, &arguments.wanted.filter())? {
        print(&found?, arguments.json);
        if output::unread() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One record, as a line for people or as it is.
pub(super) fn print(found: &Found, json: bool) {
    if json {
        println!("{}", found.text);
    } else if let Some(row) = row(&found.record) {
        println!("{row}");
    }
}
