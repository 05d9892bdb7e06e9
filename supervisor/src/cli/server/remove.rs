//! `lockhouse server remove`

use std::process::ExitCode;

use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Places, Reach, ServerDefinition, log_out};

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

/// Removes what it was logged in with, and what can be found out again.
fn forget(name: &ServerName, definition: &ServerDefinition, places: &Places) {
    if let Reach::Http(endpoint) = &definition.reach {
        match log_out(name, endpoint) {
            Ok(true) => println!(
                "removed the token of its login; the authorization server is not told, so revoke it there if you must"
            ),
            Ok(false) => {}
            Err(error) => eprintln!("lockhouse: the token of its login cannot be removed: {error}"),
        }
    }
    for file in places.cached(name, definition) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                eprintln!("lockhouse: cannot remove {}: {error}", file.display());
            }
            _ => {}
        }
    }
}

pub(super) fn remove(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let name = arguments.name.as_str();
    let settings = load(files)?;
    let mut edit = Edit::open(files).map_err(|error| complain_config(&error))?;
    let Some(server) = edit.server(name) else {
        let other = settings.engine.servers.iter().find(|(known, _)| known.as_str() == name);
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
    if let Some((name, definition)) = settings.engine.servers.iter().find(|(known, _)| known.as_str() == name)
    {
        forget(name, definition, &settings.engine.places);
    }
    if let Some(state) = settings.engine.places.state {
        println!(
            "its log and what its tools were when you met them stay in {}, and the audit log stays as it is",
            state.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
