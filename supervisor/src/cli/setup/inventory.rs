//! Finds the MCP servers in the files of the user's AI clients, for `lockhouse setup`.

use std::collections::BTreeMap;

use lockhouse_client_files::{AiClient, EntryPlace};
use lockhouse_config::{self as config, ConfigEdit, Environment, SkipReason};
use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

use crate::cli::import::candidate::{Candidate, Importer, Verdict};
use crate::cli::import::{show_losses, show_project_files, sources};
use crate::cli::{print_config_error, table};

/// A server in an AI client's file.
pub(super) struct Found {
    pub(super) client: AiClient,
    pub(super) place: EntryPlace,
    pub(super) candidate: Candidate,
}

/// The servers in the files of the user's AI clients.
pub(super) struct Inventory {
    pub(super) servers: Vec<Found>,
    files: usize,
    /// Whether Lockhouse has servers already.
    pub(super) has_configured: bool,
}

impl Found {
    /// Returns the name that the server has in Lockhouse's configuration, or will have if it is taken over. `None` if it
    /// cannot be taken over.
    pub(super) fn name(&self) -> Option<&ServerName> {
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
    /// Reads the files. A file that cannot be read is reported, and its servers are left out.
    pub(super) fn find(
        configured: &BTreeMap<ServerName, ServerDefinition>,
        edit: &ConfigEdit,
        environment: &Environment,
    ) -> Self {
        let mut importer = Importer::new(configured, edit, environment);
        let mut inventory = Self { servers: Vec::new(), files: 0, has_configured: !configured.is_empty() };
        let mut found = Vec::new();
        for source in sources(None, environment) {
            let Some(client) = source.client else { continue };
            inventory.files += 1;
            match config::list_servers(&source.path, environment) {
                Ok(listing) => {
                    let listed = listing.into_iter().flat_map(|listing| listing.servers);
                    found.extend(listed.map(|listed| (client, source.path.clone(), listed)));
                }
                Err(error) => drop(print_config_error(&error)),
            }
        }
        // Of two servers with one name, the one for all projects is taken over, and the one that needs no confirmation.
        found.sort_by_key(|(_, _, listed)| (listed.needs_confirmation(), listed.project().is_some()));
        for (client, path, listed) in found {
            let place = EntryPlace { section: listed.section.clone(), name: listed.name.clone() };
            let candidate = importer.candidate(client.name(), &path, listed);
            inventory.servers.push(Found { client, place, candidate });
        }
        inventory.servers.retain(|found| !found.is_lockhouse());
        inventory
    }

    /// Prints each server once, with the AI clients that have it, and a summary.
    pub(super) fn show(&self, environment: &Environment) {
        let mut rows: Vec<(Option<&ServerName>, Vec<String>)> = Vec::new();
        for found in &self.servers {
            let (name, client) = (found.name(), found.client.name());
            let known = rows.iter_mut().find(|(known, _)| known.is_some() && *known == name);
            match known {
                Some((_, cells)) if cells[1].split(", ").any(|known| known == client) => {}
                Some((_, cells)) => cells[1] += &format!(", {client}"),
                None => {
                    let outcome = match &found.candidate.verdict {
                        Verdict::Same { .. } => "in Lockhouse already".to_owned(),
                        _ => found.candidate.outcome().replacen("imported", "can be taken over", 1),
                    };
                    let shown = name.map_or(found.candidate.name.as_str(), ServerName::as_str).to_owned();
                    rows.push((name, vec![shown, client.to_owned(), found.candidate.reach.clone(), outcome]));
                }
            }
        }
        if !rows.is_empty() {
            let cells: Vec<Vec<String>> = rows.iter().map(|(_, cells)| cells.clone()).collect();
            println!("{}", table::render(&["server", "AI clients", "command or URL", "state"], &cells));
        }
        self.servers.iter().for_each(|found| show_losses(&found.candidate));
        show_project_files(environment, "copy its servers with lockhouse import --from");
        let new = self.servers.iter().filter(|found| found.candidate.imported().is_some()).count();
        let refused = rows.iter().filter(|(name, _)| name.is_none()).count();
        println!(
            "{} in {}: {new} can be taken over, {} in Lockhouse already, {refused} cannot be taken over\n",
            counted(rows.len(), "server"),
            counted(self.files, "file"),
            rows.len() - new - refused,
        );
    }
}

/// Returns a number with its noun, such as `2 servers`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
