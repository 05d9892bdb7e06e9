//! `lockhouse audit export`

use std::path::Path;
use std::process::ExitCode;

use super::{Done, Wanted};
use crate::audit::ocsf::Events;
use crate::audit::read::records;
use crate::cli::output;

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
    let mut events = Events::default();
    for found in records(directory, &arguments.wanted.filter())? {
        for event in events.of(found?) {
            println!("{event}");
        }
        if output::unread() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    for event in events.left_over() {
        println!("{event}");
    }
    Ok(ExitCode::SUCCESS)
}
