//! The profile `default` of a sandboxed upstream server: what it grants is derived from how the server is started,
//! anew at each start.
//!
//! Landlock cannot take a path out of a granted directory. The profile is therefore a list of what is granted, and the
//! home directory is not in it.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use lockhouse_base::files::create_private_directory;

use super::named_paths::NamedPaths;
use super::{ConfineError, Grants, SandboxPlaces, runtime_paths};
use crate::definition::{Confinement, ServerCommand};

/// The directories in the server's own folder, and the environment variables that name them. Each server has caches of
/// its own: in a shared cache of npx or uvx, a server could replace programs that others run.
const DIRECTORIES: [(&str, &str); 5] = [
    ("XDG_CACHE_HOME", "cache"),
    ("npm_config_cache", "npm"),
    ("UV_TOOL_DIR", "uv-tools"),
    ("PIPX_HOME", "pipx"),
    ("TMPDIR", "tmp"),
];

/// Creates the server's own folder. Returns the environment variables that lead the server's caches and temporary files
/// there. The server itself may have changed what is in the folder, so nothing in it is followed.
pub(super) fn prepare_folder(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>, ConfineError> {
    let failed = |source| ConfineError::Folder { path: folder.to_owned(), source };
    create_private_directory(folder).map_err(failed)?;
    let mut variables = Vec::new();
    for (variable, name) in DIRECTORIES {
        let path = folder.join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => variables.push((variable, path)),
        }
    }
    Ok(variables)
}

/// Adds what the profile grants to the configured grants.
pub(super) fn extend(
    grants: &mut Grants,
    command: &ServerCommand,
    confinement: &Confinement,
    places: &SandboxPlaces,
    folder: &Path,
) -> Result<(), ConfineError> {
    let home = std::env::var_os("HOME").map(PathBuf::from).as_deref().and_then(resolved_home);
    let settings = runtime_paths::runner_settings(&command.program, home.as_deref(), &confinement.read)?;
    let NamedPaths { read, write, withheld: _ } = NamedPaths::find(command, home.as_deref(), places);
    grants.read.extend(runtime_paths::existing(home.as_deref()));
    grants.read.extend(settings);
    grants.read.extend(read);
    grants.write.extend(write);
    // Programs that npx and uvx install are executed there.
    grants.read.push(folder.to_owned());
    grants.write.push(folder.to_owned());
    Ok(())
}

/// Returns the paths in the command, working directory and environment variables of a server, with the permissions that
/// the profile `default` gives for them. `home` is the home directory.
pub fn profile_paths(command: &ServerCommand, home: Option<&Path>, places: &SandboxPlaces) -> NamedPaths {
    NamedPaths::find(command, home.and_then(resolved_home).as_deref(), places)
}

/// Returns the home directory without symbolic links. `None` for an account without one.
fn resolved_home(home: &Path) -> Option<PathBuf> {
    let resolved = std::fs::canonicalize(home).ok().filter(|_| home.is_absolute());
    resolved.filter(|home| home != Path::new("/"))
}
