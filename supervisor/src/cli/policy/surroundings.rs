//! What a decision depends on besides the call itself, as it is now: definitions of tools as their servers last had them,
//! and where links lead. No server is started for it.

use std::collections::HashMap;

use lockhouse_catalog::Catalogue;
use lockhouse_gate::followed;
use lockhouse_policies::{Call, Item, Policy};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::remembered;

use crate::config::{Files, Settings};

/// This host, and what is known of the tools of the configured servers.
pub(super) struct Surroundings {
    /// None where the configuration cannot be used: a policy can be looked at all the same.
    settings: Option<Settings>,
    known: HashMap<ServerName, Option<Catalogue>>,
}

impl Surroundings {
    pub(super) fn of(files: &Files) -> Self {
        Self { settings: Settings::load(files).ok(), known: HashMap::new() }
    }

    /// The call with all that the policy looks at.
    pub(super) fn complete(&mut self, policy: &Policy, call: Call) -> Call {
        let call = match self.definition(&call) {
            Some(definition) => call.defined(definition),
            None => call,
        };
        let links = followed(policy.paths(&call));
        call.with_links(links)
    }

    /// The configured servers; none where the configuration cannot be used.
    pub(super) fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.settings.iter().flat_map(|settings| settings.engine.servers.keys())
    }

    fn definition(&mut self, call: &Call) -> Option<String> {
        let Item::Tool(tool) = &call.item else { return None };
        Some(self.catalogue(&call.server)?.tool(tool)?.fingerprint.clone())
    }

    /// The tools of a server as it last had them.
    pub(super) fn catalogue(&mut self, server: &ServerName) -> Option<&Catalogue> {
        let Self { settings, known } = self;
        let read = || {
            let settings = settings.as_ref()?;
            remembered(server, settings.engine.servers.get(server)?, &settings.engine.places)
        };
        known.entry(server.clone()).or_insert_with(read).as_ref()
    }
}
