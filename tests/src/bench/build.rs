//! One build of Lockhouse: its binary, with a configuration and state directories of its own.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Fallible;
use super::client::Client;

/// The files that `lockhouse` expects in its own directory.
const COMPANIONS: [&str; 2] = ["lockhouse-worker", "liblockhouse_python.so"];

/// A build that can be started any number of times.
pub(crate) struct Build {
    lockhouse: PathBuf,
    scratch: tempfile::TempDir,
}

impl Build {
    /// Creates the build of a `lockhouse` binary. Fails if the binary or a file that must lie beside it is missing.
    pub(crate) fn at(lockhouse: &Path, fixture: &Path) -> Fallible<Self> {
        let lockhouse =
            lockhouse.canonicalize().map_err(|error| format!("{}: {error}", lockhouse.display()))?;
        if !lockhouse.is_file() {
            return Err(format!("{} is not a file", lockhouse.display()).into());
        }
        for companion in COMPANIONS {
            if !lockhouse.with_file_name(companion).is_file() {
                return Err(format!("{} has no {companion} in its directory", lockhouse.display()).into());
            }
        }
        let scratch = tempfile::tempdir()?;
        let servers = json!({"mcpServers": {"fixture": {"command": fixture}}});
        std::fs::write(scratch.path().join("servers.json"), servers.to_string())?;
        std::fs::write(
            scratch.path().join("policy.toml"),
            "version = 1\n[servers.fixture]\nallow = [\"*\"]\n",
        )?;
        Ok(Self { lockhouse, scratch })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.lockhouse
    }

    /// Starts a new process of this build, and returns a client that has initialized the connection.
    pub(crate) fn start(&self) -> Fallible<Client> {
        Client::start(&self.lockhouse, self.scratch.path())
    }
}
