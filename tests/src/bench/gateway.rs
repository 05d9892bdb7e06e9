//! The gateway beside which Lockhouse is measured (`bench-gateway`): it does only what running programs with tool calls
//! requires.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Fallible;
use super::build::Build;
use super::client::Client;
use super::workloads::Row;

/// The upstream servers of the benchmark that the gateway does not have.
const OTHER_SERVERS: [&str; 3] = ["fixture", "echo100", "echo870"];

/// A gateway that the benchmark can start any number of times.
pub(crate) struct Gateway {
    program: PathBuf,
    /// The directory of the language engines.
    engines: PathBuf,
    server: PathBuf,
}

impl Gateway {
    /// Returns the gateway with the language engines of a build. `programs` is the directory of `bench-gateway` and of its
    /// upstream server.
    pub(crate) fn with_engines_of(build: &Build, programs: &Path) -> Fallible<Self> {
        let engines = build.path().parent().ok_or("no directory")?.to_owned();
        Ok(Self { program: programs.join("bench-gateway"), engines, server: programs.join("bench-echo") })
    }

    /// Starts a new gateway process, and returns an MCP client that has initialized the connection.
    pub(crate) fn start(&self) -> Fallible<Client> {
        let mut command = Command::new(&self.program);
        command.arg(&self.engines).arg(&self.server);
        Client::start(command)
    }

    /// Whether the gateway can answer the request of `row`: it runs programs, and has one upstream server.
    pub(crate) fn serves(row: &Row) -> bool {
        let code = row.call["arguments"]["code"].as_str();
        code.is_some_and(|code| OTHER_SERVERS.iter().all(|server| !code.contains(server)))
    }
}
