//! Looks up the data on which policy decisions depend besides the policy and the call: the last known definitions of
//! the servers' tools, and the targets of symbolic links on this host. The lookup starts no server.

use std::collections::HashMap;

use lockhouse_catalog::Catalogue;
use lockhouse_host_files::{files_catalogue, resolve_paths};
use lockhouse_policies::{Call, CallTarget, Policy};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::cached_tools;

use lockhouse_config::{Files, Settings};

/// The data on which policy decisions depend besides the policy and the call: the configured servers and the
/// last known definitions of their tools.
pub(super) struct Environment {
    /// The loaded configuration. `None` if it cannot be loaded: a policy can be examined without it.
    settings: Option<Settings>,
    catalogues: HashMap<ServerName, Option<Catalogue>>,
}

impl Environment {
    pub(super) fn load(files: &Files) -> Self {
        Self { settings: Settings::load(files).ok(), catalogues: HashMap::new() }
    }

    /// Adds to a call what the policy evaluates besides the tool and its arguments: the fingerprint of the tool's
    /// definition, and the targets of symbolic links on the paths in the arguments.
    pub(super) fn complete(&mut self, policy: &Policy, call: Call) -> Call {
        let call = match self.definition(&call) {
            Some(definition) => call.with_definition_digest(definition),
            None => call,
        };
        let links = resolve_paths(policy.paths_to_resolve(&call));
        call.with_resolved_paths(links)
    }

    /// Whether the configuration cannot be loaded, so that the servers are not known.
    pub(super) fn has_fault(&self) -> bool {
        self.settings.is_none()
    }

    /// Returns the names of the configured servers. There are none if the configuration cannot be loaded.
    pub(super) fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.settings.iter().flat_map(|settings| {
            let own = Some(&settings.engine.host_files).filter(|files| files.is_on());
            settings.engine.servers.keys().chain(own.map(|files| &files.name))
        })
    }

    fn definition(&mut self, call: &Call) -> Option<String> {
        let CallTarget::Tool(tool) = &call.item else { return None };
        Some(self.catalogue(&call.server)?.tool(tool)?.fingerprint.clone())
    }

    /// Returns the last known tools of a server from the cache of tool definitions. `None` if the cache has no tools
    /// of the server.
    pub(super) fn catalogue(&mut self, server: &ServerName) -> Option<&Catalogue> {
        let Self { settings, catalogues } = self;
        let read = || {
            let settings = settings.as_ref()?;
            let own = &settings.engine.host_files;
            if own.is_on() && own.name == *server {
                return Some(files_catalogue());
            }
            cached_tools(server, settings.engine.servers.get(server)?, &settings.engine.places)
        };
        catalogues.entry(server.clone()).or_insert_with(read).as_ref()
    }
}
