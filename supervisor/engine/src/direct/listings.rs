//! Lists the tools, prompts and resources of upstream servers with `direct` access for one AI client, which uses them
//! without code.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lockhouse_base::principal::Principal;
use lockhouse_catalog::{Catalogue, make_json_visible};
use lockhouse_gate::Entries;
use lockhouse_messages::ListKind;
use lockhouse_policies::Listing;
use lockhouse_protocol::ServerName;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{DirectServers, ExposedNames};
use crate::supervisor::Supervisor;

/// How long a direct call of an unknown tool name waits for upstream servers whose tools are not yet known.
pub(super) const CALL_WAIT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct NamedEntry<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
}

/// A prompt as an upstream server lists it: the server, the server's name prefix, the JSON definition and the
/// original name.
pub(super) type PromptEntry = (ServerName, String, String, String);

impl DirectServers {
    /// Returns the entries of a list (tools, prompts, resources or resource templates) that this AI client may see,
    /// each as JSON text.
    pub(crate) async fn list(
        &self,
        supervisor: &Supervisor,
        client: &Principal,
        list: ListKind,
    ) -> Vec<String> {
        let entry_json = |(_, resource, _)| resource;
        match list {
            ListKind::Tools => self.list_tools(supervisor, client).await,
            ListKind::Prompts => self.list_prompt_entries(supervisor, client).await,
            ListKind::Resources => {
                self.list_resources(supervisor, client, false).await.into_iter().map(entry_json).collect()
            }
            ListKind::ResourceTemplates => {
                self.list_resources(supervisor, client, true).await.into_iter().map(entry_json).collect()
            }
        }
    }

    async fn list_tools(&self, supervisor: &Supervisor, client: &Principal) -> Vec<String> {
        let names = self.tool_names(supervisor, supervisor.first_list_wait()).await;
        let gate = supervisor.gate();
        let scope = gate.direct_scope(client);
        let mut entries = Vec::new();
        for (server, connection, _) in gate.direct_servers() {
            let Some(catalogue) = connection.known_catalogue() else { continue };
            for tool in &catalogue.tools {
                let Some(name) = names.exposed_name(server, tool.name.as_str()) else { continue };
                if gate.shows_tool(server, tool, client.client(), &scope) {
                    entries.extend(renamed(&without_header_annotations(tool.definition()), name));
                } else if supervisor.settings().list_denied_tools {
                    let denial = gate.denial_of_tool(server, tool, client.client(), &scope);
                    entries.extend(denial.map(|reason| denied_tool(name, &reason)));
                }
            }
        }
        entries
    }

    /// Returns the exposed names of the tools of all servers with `direct` access. The names do not depend on the AI
    /// client. First waits up to `wait` for servers whose tools are not yet known.
    pub(super) async fn tool_names(&self, supervisor: &Supervisor, wait: Duration) -> Arc<ExposedNames> {
        let gate = supervisor.gate();
        if !wait.is_zero() {
            let first = gate.direct_servers().map(|(_, connection, _)| connection.catalogue());
            join_all(first.map(|first| tokio::time::timeout(wait, first))).await;
        }
        let direct: Vec<(&ServerName, &str, Arc<Catalogue>)> = gate
            .direct_servers()
            .filter_map(|(name, connection, prefix)| Some((name, prefix, connection.known_catalogue()?)))
            .collect();
        self.exposed_names(&direct, &supervisor.settings().builtin_tools)
    }

    async fn list_prompt_entries(&self, supervisor: &Supervisor, client: &Principal) -> Vec<String> {
        let listed = self.list_prompts(supervisor, client).await;
        let names = prompt_names(supervisor, &listed);
        let renamed =
            |(server, _, prompt, name): &PromptEntry| renamed(prompt, names.exposed_name(server, name)?);
        listed.iter().filter_map(renamed).collect()
    }

    /// Lists the resources (or the resource templates, if `templates` is set) of all servers with `direct` access.
    /// Each has its server, JSON definition and URI. If several servers list the same URI, only the first server's
    /// entry is kept.
    pub(super) async fn list_resources(
        &self,
        supervisor: &Supervisor,
        client: &Principal,
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
                    resources.push((server.clone(), make_json_visible(entry.get()).into_owned(), uri));
                }
            }
        }
        resources
    }

    /// Lists the prompts of all servers with `direct` access. `listing` is always [`Listing::Prompts`].
    pub(super) async fn list_prompts(&self, supervisor: &Supervisor, client: &Principal) -> Vec<PromptEntry> {
        let mut listed = Vec::new();
        for (server, prefix, entries) in entries(supervisor, client, Listing::Prompts).await {
            for entry in entries.items {
                let named = serde_json::from_str::<NamedEntry<'_>>(entry.get());
                let name = named.and_then(|named| serde_json::from_str::<String>(named.name.get()));
                if let Ok(name) = name {
                    listed.push((server.clone(), prefix.clone(), entry.get().to_owned(), name));
                }
            }
        }
        listed
    }
}

/// Requests a list (resources or prompts) from all upstream servers with `direct` access concurrently. Returns each
/// server with its name prefix and its entries. Servers that do not answer are left out.
async fn entries(
    supervisor: &Supervisor,
    client: &Principal,
    listing: Listing,
) -> Vec<(ServerName, String, Entries)> {
    let gate = supervisor.gate();
    let ask = gate.direct_servers().map(|(server, _, prefix)| async move {
        let (channel, _follower, _) = supervisor.open_channel(client, false);
        let entries = supervisor.list_directly(channel, server, listing).await?;
        Some((server.clone(), prefix.to_owned(), entries))
    });
    join_all(ask).await.into_iter().flatten().collect()
}

pub(super) fn prompt_names(supervisor: &Supervisor, listed: &[PromptEntry]) -> ExposedNames {
    let targets = listed.iter().map(|(server, prefix, _, name)| (server, prefix.as_str(), name.as_str()));
    ExposedNames::new(targets, &supervisor.settings().builtin_tools)
}

/// Returns a definition for a tool that the policy denies, with the reason in its description. Because the tool is
/// listed, a program that calls it gets the denial as its error, and not an error about an unknown function.
fn denied_tool(name: &str, reason: &str) -> String {
    let description = format!("Denied: {reason}. A call fails.");
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}}).to_string()
}

/// Removes the annotations `x-mcp-header` from a tool's definition. Because of such an annotation, an AI client would
/// also send an argument as an HTTP header, and the server would have to compare the header with the argument.
/// Lockhouse reads only the arguments.
fn without_header_annotations(definition: &str) -> Cow<'_, str> {
    const ANNOTATION: &str = "x-mcp-header";
    if !definition.contains(ANNOTATION) && !definition.contains("\\u") {
        return definition.into();
    }
    fn remove(value: &mut Value) -> bool {
        match value {
            Value::Object(members) => {
                let removed = members.shift_remove(ANNOTATION).is_some();
                members.values_mut().map(remove).filter(|removed| *removed).count() > 0 || removed
            }
            Value::Array(items) => items.iter_mut().map(remove).filter(|removed| *removed).count() > 0,
            _ => false,
        }
    }
    let Ok(mut value) = serde_json::from_str::<Value>(definition) else { return definition.into() };
    match value.get_mut("inputSchema").is_some_and(remove) {
        true => value.to_string().into(),
        false => definition.into(),
    }
}

/// Returns the JSON definition of a tool or prompt with its name replaced by the exposed name `name`, and with
/// invisible characters replaced by visible ones. All other bytes stay the same. Returns `None` if the definition is
/// invalid.
fn renamed(entry: &str, name: &str) -> Option<String> {
    let entry = &*make_json_visible(entry);
    let own: NamedEntry<'_> = serde_json::from_str(entry).ok()?;
    let own = own.name.get();
    let start = own.as_ptr() as usize - entry.as_ptr() as usize;
    let name = serde_json::to_string(name).ok()?;
    Some([&entry[..start], &name, &entry[start + own.len()..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_annotations_are_removed_and_nothing_else_changes() {
        let plain = r#"{ "name":"a","inputSchema":{"type":"object"}, "x-mcp-header":1.0 }"#;
        assert_eq!(without_header_annotations(plain), plain);
        let annotated =
            r#"{"name":"a","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}"#;
        let expected = r#"{"name":"a","inputSchema":{"properties":{"r":{"type":"string"}}}}"#;
        assert_eq!(without_header_annotations(annotated), expected);
        let escaped = annotated.replace("x-mcp-header", r"x\u002dmcp-header");
        assert_eq!(without_header_annotations(&escaped), expected);
    }

    #[test]
    fn only_the_name_of_a_definition_is_replaced() {
        let entry = r#"{ "x":{"name":"inner"}, "name" : "a\u0062", "new":[1.0,1e400] }"#;
        let expected = r#"{ "x":{"name":"inner"}, "name" : "s__ab", "new":[1.0,1e400] }"#;
        assert_eq!(renamed(entry, "s__ab").as_deref(), Some(expected));
        assert_eq!(renamed(r#"{"name":"a","name":"b"}"#, "c"), None);
    }
}
