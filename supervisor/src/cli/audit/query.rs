//! `lockhouse audit query`

use std::path::Path;
use std::process::ExitCode;

use lockhouse_audit::read::Found;

use super::Done;
use super::matching::matching;
use super::row::row;
use super::wanted::Wanted;
use crate::cli::{USAGE, complain, output};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    /// Print the records as they are written
    #[arg(long)]
    json: bool,
}

pub(super) fn query(directory: &Path, arguments: &Arguments) -> Done {
    let filter = match arguments.wanted.filter() {
        Ok(filter) => filter,
        Err(error) => return Ok(complain(&error, USAGE)),
    };
    let mut is_empty = true;
    for found in matching(directory, &filter)? {
        is_empty &= !print(&found?, arguments.json);
        if output::unread() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    match is_empty {
        true => Ok(arguments.wanted.tell_none(directory)?),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// One record, as a line for people or as it is. Whether there was anything to print.
pub(super) fn print(found: &Found, json: bool) -> bool {
    if json {
        println!("{}", found.text);
        return true;
    }
    let row = row(&found.record);
    row.inspect(|row| println!("{row}")).is_some()
}
