//! What an AI client is shown of servers that it has directly.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lockhouse_catalog::{Catalogue, visible_json};
use lockhouse_gate::Entries;
use lockhouse_messages::List;
use lockhouse_policies::Listing;
use lockhouse_protocol::ServerName;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{Client, Direct, Names};
use crate::supervisor::Supervisor;

/// How long a list waits for a server that was never seen.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
}

/// Server, what stands before its names, the entry, and its name.
pub(super) type Entry = (ServerName, String, String, String);

impl Direct {
    /// The entries of a list, each as JSON.
    pub(crate) async fn list(&self, supervisor: &Supervisor, client: &Client, list: List) -> Vec<String> {
        let of_resource = |(_, resource, _)| resource;
        match list {
            List::Tools => self.tools(supervisor, client).await,
            List::Prompts => self.prompts(supervisor, client).await,
            List::Resources => {
                self.resources(supervisor, client, false).await.into_iter().map(of_resource).collect()
            }
            List::ResourceTemplates => {
                self.resources(supervisor, client, true).await.into_iter().map(of_resource).collect()
            }
        }
    }

    /// A digest of the tools that a client is shown.
    pub(crate) async fn tools_digest(&self, supervisor: &Supervisor, client: &Client) -> [u8; 32] {
        let mut digest = Sha256::new();
        self.tools(supervisor, client).await.iter().for_each(|tool| digest.update(tool));
        digest.finalize().into()
    }

    async fn tools(&self, supervisor: &Supervisor, client: &Client) -> Vec<String> {
        let names = self.tool_names(supervisor, true).await;
        let gate = supervisor.gate();
        let scope = gate.direct_scope(&client.principal);
        let mut entries = Vec::new();
        for (server, connection, _) in gate.direct() {
            let Some(catalogue) = connection.known() else { continue };
            let shown =
                catalogue.tools.iter().filter(|tool| gate.shows(server, tool, client.name.as_ref(), &scope));
            entries.extend(
                shown.filter_map(|tool| {
                    renamed(tool.definition(), names.exposed(server, tool.name.as_str())?)
                }),
            );
        }
        entries
    }

    /// The names of all tools, whoever may know of them: of two clients none has another name for a tool.
    pub(super) async fn tool_names(&self, supervisor: &Supervisor, waits: bool) -> Arc<Names> {
        let gate = supervisor.gate();
        if waits {
            let first = gate.direct().map(|(_, connection, _)| connection.catalogue());
            join_all(first.map(|first| tokio::time::timeout(PATIENCE, first))).await;
        }
        let direct: Vec<(&ServerName, &str, Arc<Catalogue>)> = gate
            .direct()
            .filter_map(|(name, connection, prefix)| Some((name, prefix, connection.known()?)))
            .collect();
        self.names_of(&direct)
    }

    async fn prompts(&self, supervisor: &Supervisor, client: &Client) -> Vec<String> {
        let listed = self.listed(supervisor, client, Listing::Prompts).await;
        let names = prompt_names(&listed);
        let renamed = |(server, _, prompt, name): &Entry| renamed(prompt, names.exposed(server, name)?);
        listed.iter().filter_map(renamed).collect()
    }

    /// Resources or their templates, each with its server and its URI. Of several with one URI the first server has it.
    pub(super) async fn resources(
        &self,
        supervisor: &Supervisor,
        client: &Client,
        templates: bool,
    ) -> Vec<(ServerName, String, String)> {
        #[derive(Deserialize)]
        struct Resource {
            #[serde(alias = "uriTemplate")]
            uri: String,
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut resources = Vec::new();
        for (server, _, entries) in entries(supervisor, client, Listing::Resources).await {
            let all = if templates { entries.templates } else { entries.items };
            for entry in all {
                let Ok(Resource { uri }) = serde_json::from_str(entry.get()) else { continue };
                if seen.insert(uri.clone()) {
                    resources.push((server.clone(), visible_json(entry.get()).into_owned(), uri));
                }
            }
        }
        resources
    }

    /// Prompts, each with its server and what the server calls it.
    pub(super) async fn listed(
        &self,
        supervisor: &Supervisor,
        client: &Client,
        listing: Listing,
    ) -> Vec<Entry> {
        let mut listed = Vec::new();
        for (server, prefix, entries) in entries(supervisor, client, listing).await {
            for entry in entries.items {
                let named = serde_json::from_str::<Named<'_>>(entry.get());
                let name = named.and_then(|named| serde_json::from_str::<String>(named.name.get()));
                if let Ok(name) = name {
                    listed.push((server.clone(), prefix.clone(), entry.get().to_owned(), name));
                }
            }
        }
        listed
    }
}

/// Asks all servers at once; one that does not answer is left out.
async fn entries(
    supervisor: &Supervisor,
    client: &Client,
    listing: Listing,
) -> Vec<(ServerName, String, Entries)> {
    let gate = supervisor.gate();
    let ask = gate.direct().map(|(server, _, prefix)| async move {
        let (line, _followed) = client.line();
        let entries = supervisor.list_directly(line, server, listing).await?;
        Some((server.clone(), prefix.to_owned(), entries))
    });
    join_all(ask).await.into_iter().flatten().collect()
}

pub(super) fn prompt_names(listed: &[Entry]) -> Names {
    Names::of(listed.iter().map(|(server, prefix, _, name)| (server, prefix.as_str(), name.as_str())))
}

/// An entry as its server wrote it, under the name that the client has for it, and with nothing hidden.
fn renamed(entry: &str, name: &str) -> Option<String> {
    let entry = &*visible_json(entry);
    let own: Named<'_> = serde_json::from_str(entry).ok()?;
    let own = own.name.get();
    let start = own.as_ptr() as usize - entry.as_ptr() as usize;
    let name = serde_json::to_string(name).ok()?;
    Some([&entry[..start], &name, &entry[start + own.len()..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_everything_but_its_name() {
        let entry = r#"{ "x":{"name":"inner"}, "name" : "a\u0062", "new":[1.0,1e400] }"#;
        let expected = r#"{ "x":{"name":"inner"}, "name" : "s__ab", "new":[1.0,1e400] }"#;
        assert_eq!(renamed(entry, "s__ab").as_deref(), Some(expected));
        assert_eq!(renamed(r#"{"name":"a","name":"b"}"#, "c"), None);
    }
}
