//! One build of Lockhouse to be measured: its binary, with a configuration and state directories of its own.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::Fallible;
use super::client::Client;

/// The files that `lockhouse` needs in the directory of its binary.
const COMPANIONS: [&str; 2] = ["lockhouse-worker", "liblockhouse_python.so"];

/// A build of Lockhouse that the benchmark can start any number of times.
pub(crate) struct Build {
    lockhouse: PathBuf,
    scratch: tempfile::TempDir,
}

impl Build {
    /// Creates the build of the binary `lockhouse`. Fails if the binary or a file that must be in its directory is
    /// missing.
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

    /// Starts a new `lockhouse serve` process of this build, and returns an MCP client that has initialized the
    /// connection.
    pub(crate) fn start(&self) -> Fallible<Client> {
        Client::start(&self.lockhouse, self.scratch.path())
    }
}
