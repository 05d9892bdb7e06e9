//! `lockhouse server remove`: removes an upstream server from the configuration.

use std::process::ExitCode;

use lockhouse_config::{ConfigEdit, Files};
use lockhouse_messages::Logout;
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{Endpoint, ServerDefinition, StoragePaths, log_out};

use super::secret_files::{remove_unused, secret_files};
use super::{load, unknown};
use crate::cli::{USAGE, print_config_error, recorded_config_edit};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Arguments {
    /// The name of the server
    name: String,
    /// Accepted for compatibility with `claude mcp remove`
    #[arg(short, long, hide = true)]
    scope: Option<String>,
}

/// Removes the OAuth token of a server and the cache files about it, which can be created again.
async fn remove_login_and_caches(name: &ServerName, definition: &ServerDefinition, places: &StoragePaths) {
    if let Endpoint::Http(endpoint) = &definition.endpoint {
        match log_out(name, endpoint).await {
            Ok(Logout::Nothing) => {}
            Ok(Logout::Complete) => println!("removed and revoked its login token"),
            Ok(Logout::NotRevoked(reason)) => {
                println!("removed its login token, which was not revoked: {reason}")
            }
            Err(error) => eprintln!("lockhouse: its login token cannot be removed: {error}"),
        }
    }
    for file in places.cached_files(name, definition) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                eprintln!("lockhouse: cannot remove {}: {error}", file.display());
            }
            _ => {}
        }
    }
    // The folder of a sandboxed server has only caches and temporary files.
    if let Some(folder) = places.server_folder(name, definition).filter(|folder| folder.exists())
        && let Err(error) = std::fs::remove_dir_all(&folder)
    {
        eprintln!("lockhouse: cannot remove {}: {error}", folder.display());
    }
}

pub(super) async fn remove(files: &Files, arguments: &Arguments) -> Result<ExitCode, ExitCode> {
    let name = arguments.name.as_str();
    let settings = load(files)?;
    let mut edit = ConfigEdit::open(files).map_err(|error| print_config_error(&error))?;
    let Some(server) = edit.server(name) else {
        let other = settings.engine.servers.iter().find(|(known, _)| known.as_str() == name);
        let Some((_, server)) = other else { return Err(unknown(&settings, name).print()) };
        eprintln!(
            "lockhouse: {name} is configured in {}, which belongs to another program: remove it there",
            server.origin
        );
        return Err(ExitCode::from(USAGE));
    };
    let secrets = secret_files(server);
    let path = edit.path().to_owned();
    edit.remove_server(name);
    let text = edit.text();
    let saved = recorded_config_edit::save(edit, files, &format!("server remove {name}"), true);
    saved.map_err(|error| print_config_error(&error))?;
    println!("removed {name} from {}", path.display());
    remove_unused(&secrets, &text);
    if let Some((name, definition)) = settings.engine.servers.iter().find(|(known, _)| known.as_str() == name)
    {
        remove_login_and_caches(name, definition, &settings.engine.places).await;
    }
    if let Some(state) = settings.engine.places.state_dir {
        println!(
            "its log and its accepted tool definitions remain in {}; the audit log is unchanged",
            state.display()
        );
    }
    Ok(ExitCode::SUCCESS)
}
