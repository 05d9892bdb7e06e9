//! Tools as their servers last had them, for policies that pin definitions. No server is started for it.

use std::collections::HashMap;

use lockhouse_policies::{Call, Item};
use lockhouse_protocol::ServerName;

use crate::catalog::Catalogue;
use crate::config::{Files, Settings};
use crate::upstream::remembered;

/// What is known of the tools of the configured servers.
pub(super) struct Definitions {
    /// None where the configuration cannot be used: a policy can be looked at all the same.
    settings: Option<Settings>,
    known: HashMap<ServerName, Option<Catalogue>>,
}

impl Definitions {
    pub(super) fn of(files: &Files) -> Self {
        Self { settings: Settings::load(files).ok(), known: HashMap::new() }
    }

    /// The call, with the definition of its tool where that is known.
    pub(super) fn complete(&mut self, call: Call) -> Call {
        let Item::Tool(tool) = &call.item else { return call };
        let Some(catalogue) = self.catalogue(&call.server) else { return call };
        match catalogue.tool(tool).map(|tool| tool.fingerprint.clone()) {
            Some(definition) => call.defined(definition),
            None => call,
        }
    }

    fn catalogue(&mut self, server: &ServerName) -> Option<&Catalogue> {
        let Self { settings, known } = self;
        let read = || {
            let settings = settings.as_ref()?;
            remembered(server, settings.servers.get(server)?, &settings.places)
        };
        known.entry(server.clone()).or_insert_with(read).as_ref()
    }
}
