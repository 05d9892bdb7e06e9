//! The plan of `lockhouse setup`: what is written, where, and which servers it concerns.

use std::path::{Path, PathBuf};

use lockhouse_client_files::{AiClient, EntryPlace};
use lockhouse_config::{Environment, NoSandboxReason, SandboxChoice, ServerEntry, SkipReason};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::{ServerDefinition, ServerLimits};

use crate::attempt::Attempt;
use crate::candidate::Candidate;
use crate::client_change::ClientFile;
use crate::inventory::{Found, Inventory};

/// What the user decided.
pub struct Plan<'i> {
    /// The servers to add to Lockhouse's configuration.
    pub servers: Vec<NewServer<'i>>,
    /// Whether servers are removed from the files of AI clients that get an entry for Lockhouse.
    pub moves: bool,
    pub writes_policy: bool,
    pub files: Vec<ClientFile>,
}

/// A server to add to Lockhouse's configuration.
pub struct NewServer<'i> {
    candidate: &'i Candidate,
    name: &'i ServerName,
    /// The server as it is written, with its sandbox.
    pub entry: ServerEntry,
}

impl<'i> NewServer<'i> {
    /// Returns `None` for a server that Lockhouse has already or cannot use.
    pub fn new(found: &'i Found) -> Option<Self> {
        let (name, entry) = found.candidate.imported()?;
        Some(Self { candidate: &found.candidate, name, entry: entry.clone() })
    }

    pub fn name(&self) -> &'i ServerName {
        self.name
    }

    /// Resolves the placeholders of the server. `path` is the configuration file.
    ///
    /// # Errors
    /// Why the server cannot be used.
    pub fn resolve(&self, environment: &Environment, path: &Path) -> Result<ServerDefinition, SkipReason> {
        self.entry.resolve(environment, ServerLimits::default(), path.display().to_string())
    }
}

impl<'i> Plan<'i> {
    /// Returns the servers to add to Lockhouse's configuration, as they were found.
    pub fn imported(&self) -> Vec<&'i Candidate> {
        self.servers.iter().map(|server| server.candidate).collect()
    }

    /// Changes the sandbox in the entry of a server to that with which it started.
    pub fn change_sandbox(&mut self, name: &ServerName, started: Attempt) {
        let servers = self.servers.iter_mut().filter(|server| server.name == name);
        servers.for_each(|server| match started {
            Attempt::UserNamespaces => server.entry.permit_user_namespaces(),
            Attempt::NoSandbox => {
                server.entry.set_sandbox(&SandboxChoice::Without(NoSandboxReason::not_started_in_it()))
            }
        });
    }

    /// Leaves servers where they are: neither adds them to the configuration, nor moves them.
    pub fn leave(&mut self, names: &[ServerName], inventory: &Inventory) {
        self.servers.retain(|server| !names.contains(server.name));
        let is_left = |found: &&Found| found.name().is_some_and(|name| names.contains(name));
        let left: Vec<&Found> = inventory.servers.iter().filter(is_left).collect();
        for file in &mut self.files {
            let is_here = |found: &&Found| found.client == file.client && found.candidate.path == file.path;
            let left: Vec<&EntryPlace> =
                left.iter().copied().filter(is_here).map(|found| &found.place).collect();
            file.moved.retain(|place| !left.contains(&place));
        }
    }
}

impl ClientFile {
    /// Returns the files to change: one with the entry for Lockhouse for each AI client, and each other file of these
    /// clients from which servers are moved. A client without an entry for Lockhouse keeps its servers.
    pub fn for_clients(
        clients: &[(AiClient, PathBuf)],
        chosen: &[&Found],
        moves: bool,
        environment: &Environment,
    ) -> Vec<Self> {
        let mut files = Vec::new();
        for (client, target) in clients {
            let others = client.existing_files(environment).into_iter().filter(|path| path != target);
            for path in std::iter::once(target.clone()).chain(others) {
                let is_in =
                    |found: &&&Found| moves && found.client == *client && found.candidate.path == path;
                let moved = chosen.iter().filter(is_in).map(|found| found.place.clone()).collect();
                files.push(Self { client: *client, registers: path == *target, path, moved });
            }
        }
        files
    }
}
