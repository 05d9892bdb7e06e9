//! `lockhouse audit export`

use std::path::Path;
use std::process::ExitCode;

use lockhouse_audit::ocsf::Events;

use super::Done;
use super::matching::matching;
use super::wanted::Wanted;
use crate::cli::{USAGE, complain, output};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The format
    #[arg(long)]
    format: Format,
    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// Events of the class API Activity (6003) of the Open Cybersecurity Schema Framework, one JSON object a line
    Ocsf,
}

pub(super) fn export(directory: &Path, arguments: &Arguments) -> Done {
    let Format::Ocsf = arguments.format;
    let filter = match arguments.wanted.filter() {
        Ok(filter) => filter,
        Err(error) => return Ok(complain(&error, USAGE)),
    };
    let (mut events, mut is_empty) = (Events::default(), true);
    for found in matching(directory, &filter)? {
        is_empty = false;
        for event in events.of(found?) {
            println!("{event}");
        }
        if output::unread() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if is_empty {
        return Ok(arguments.wanted.tell_none(directory)?);
    }
    for event in events.left_over() {
        println!("{event}");
    }
    Ok(ExitCode::SUCCESS)
}
