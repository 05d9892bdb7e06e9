//! One build of Lockhouse to be measured: its binary, with a configuration and state directories of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Fallible;
use super::client::Client;

/// The files that `lockhouse` needs in the directory of its binary.
const COMPANIONS: [&str; 2] = ["lockhouse-worker", "liblockhouse_python.so"];

/// The number of tools of each bare echo server (`bench-echo`): `echo3`, `echo100` and `echo870`. AI
/// clients can call the tools of the first one without a program, too.
pub(crate) const ECHO_TOOLS: [usize; 3] = [3, 100, 870];

/// A build of Lockhouse that the benchmark can start any number of times.
pub(crate) struct Build {
    lockhouse: PathBuf,
    scratch: tempfile::TempDir,
}

impl Build {
    /// Prepares measurements of the build with the binary `lockhouse`: writes a configuration for it to a temporary
    /// directory, which begins with `limits`. `servers` is the directory with the programs of the upstream servers. Fails if
    /// the binary or a file that must be in its directory is missing.
    pub(crate) fn at(lockhouse: &Path, servers: &Path, limits: &str) -> Fallible<Self> {
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
        let echo = servers.join("bench-echo");
        let mut servers =
            format!("{limits}[servers.fixture]\ncommand = {:?}\n", servers.join("fixture-server"));
        let mut policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n".to_owned();
        for tools in ECHO_TOOLS {
            let expose = if tools == ECHO_TOOLS[0] { "both" } else { "code" };
            servers.push_str(&format!(
                "[servers.echo{tools}]\ncommand = {echo:?}\nargs = [\"{tools}\"]\nexpose = \"{expose}\"\n"
            ));
            policy.push_str(&format!("[servers.echo{tools}]\nallow = [\"*\"]\n"));
        }
        std::fs::write(scratch.path().join("config.toml"), servers)?;
        std::fs::write(scratch.path().join("policy.toml"), policy)?;
        Ok(Self { lockhouse, scratch })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.lockhouse
    }

    /// Starts a new `lockhouse serve` process of this build, and returns an MCP client that has initialized the
    /// connection.
    pub(crate) fn start(&self) -> Fallible<Client> {
        let mut command = Command::new(&self.lockhouse);
        let scratch = self.scratch.path();
        command
            .args(["serve", "--answer", "structured"])
            .args(["--config".as_ref(), scratch.join("config.toml").as_os_str()])
            .args(["--policy".as_ref(), scratch.join("policy.toml").as_os_str()])
            .env("XDG_STATE_HOME", scratch.join("state"))
            .env("XDG_CONFIG_HOME", scratch.join("config"));
        Client::start(command)
    }
}
