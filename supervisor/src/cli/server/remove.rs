//! `lockhouse server remove`

use std::process::ExitCode;

use super::secrets::{remove_unused, secrets};
use super::{load, unknown};
use crate::cli::{USAGE, complain_config};
use crate::config::{Edit, Files};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The server
    name: String,
    /// Of other programs' grammar
    #[arg(short, long, hide = true)]
    scope: Option<String>,
}

pub(super) fn remove(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let name = arguments.name.as_str();
    let settings = load(files)?;
    let mut edit = Edit::open(files).map_err(|error| complain_config(&error))?;
    let Some(server) = edit.server(name) else {
        let other = settings.servers.iter().find(|(known, _)| known.as_str() == name);
        let Some((_, server)) = other else { return Err(unknown(&settings, name)) };
        eprintln!(
            "lockhouse: {name} comes from {}, which belongs to another program: take it out there",
            server.origin
        );
        return Err(ExitCode::from(USAGE));
    };
    let secrets = secrets(server);
    let path = edit.path().to_owned();
    edit.remove_server(name);
    let text = edit.text();
    edit.save(files).map_err(|error| complain_config(&error))?;
    println!("removed {name} from {}", path.display());
    remove_unused(&secrets, &text);
    if let Some(state) = settings.places.state {
        println!("what was seen of it stays in {}: its log, and what is known of its tools", state.display());
    }
    Ok(ExitCode::SUCCESS)
}
