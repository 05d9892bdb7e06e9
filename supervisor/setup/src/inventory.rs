//! The MCP servers in the files of the user's AI clients.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ValueEnum;
use lockhouse_client_files::{AiClient, EntryPlace};
use lockhouse_config::{ConfigEdit, ConfigError, Environment, SkipReason, list_servers};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

use crate::candidate::{Candidate, Importer, Verdict};

/// A configuration file to import servers from, and the AI client that the file belongs to. The client is `None` if it
/// can only be inferred from the file's format.
pub struct ServersFile {
    pub client: Option<AiClient>,
    pub path: PathBuf,
}

/// A server in an AI client's file.
pub struct Found {
    pub client: AiClient,
    pub place: EntryPlace,
    pub candidate: Candidate,
}

/// The servers in the files of the user's AI clients.
pub struct Inventory {
    pub servers: Vec<Found>,
    /// The number of files.
    pub files: usize,
    /// Why files could not be read. Their servers are left out.
    pub unreadable: Vec<ConfigError>,
    /// Whether Lockhouse has servers already.
    pub has_configured: bool,
}

impl Found {
    /// Returns the name that the server has in Lockhouse's configuration, or will have if it is taken over. `None` if it
    /// cannot be taken over.
    pub fn name(&self) -> Option<&ServerName> {
        match &self.candidate.verdict {
            Verdict::Import { name, .. } | Verdict::Same { name, .. } => Some(name),
            Verdict::Skip(_) | Verdict::Conflict(_) => None,
        }
    }

    fn is_lockhouse(&self) -> bool {
        matches!(self.candidate.verdict, Verdict::Skip(SkipReason::LockhouseItself))
    }
}

impl Inventory {
    /// Reads the files.
    pub fn find(
        configured: &BTreeMap<ServerName, ServerDefinition>,
        edit: &ConfigEdit,
        environment: &Environment,
    ) -> Self {
        let mut importer = Importer::new(configured, edit, environment);
        let (mut files, mut unreadable, mut found) = (0, Vec::new(), Vec::new());
        for file in servers_files(None, environment) {
            let Some(client) = file.client else { continue };
            files += 1;
            match list_servers(&file.path, environment) {
                Ok(listing) => {
                    let listed = listing.into_iter().flat_map(|listing| listing.servers);
                    found.extend(listed.map(|listed| (client, file.path.clone(), listed)));
                }
                Err(error) => unreadable.push(error),
            }
        }
        // Of two servers with one name, the one for all projects is taken over, and the one that needs no confirmation.
        found.sort_by_key(|(_, _, listed)| (listed.needs_confirmation(), listed.project().is_some()));
        let found = found.into_iter().map(|(client, path, listed)| {
            let place = EntryPlace { section: listed.section.clone(), name: listed.name.clone() };
            Found { client, place, candidate: importer.candidate(client.name(), &path, listed) }
        });
        let servers = found.filter(|found| !found.is_lockhouse()).collect();
        Self { servers, files, unreadable, has_configured: !configured.is_empty() }
    }
}

/// Returns the files to import servers from: those of the AI client or the file `from`, or those of all known AI
/// clients if it is `None`.
pub fn servers_files(from: Option<&str>, environment: &Environment) -> Vec<ServersFile> {
    let files_of = |client: AiClient| {
        let found = client.existing_files(environment).into_iter();
        found.map(move |path| ServersFile { client: Some(client), path }).collect::<Vec<_>>()
    };
    match from {
        None => AiClient::value_variants().iter().flat_map(|client| files_of(*client)).collect(),
        Some(name) => match AiClient::from_str(name, true) {
            Ok(client) => files_of(client),
            Err(_) => vec![ServersFile { client: None, path: environment.expand_home(name) }],
        },
    }
}
