//! What an AI client is shown of servers that it has directly: lists, page by page.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use lockhouse_base::principal::Principal;
use lockhouse_catalog::{Catalogue, visible_json};
use lockhouse_policies::{ClientName, Listing};
use lockhouse_protocol::ServerName;
use rmcp::model::{ErrorData, JsonObject, MetaObject, PaginatedRequestParams};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Names, raw};
use crate::{Front, calls_again, client};

/// How long an AI client may take a list for what it is. It is told when one changes, if it wants to be.
const TTL_MS: u64 = 60_000;
/// Entries of one page, and their bytes.
const PAGE_ENTRIES: usize = 1_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// How long a list waits for a server that was never seen.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is listed, as MCP names it in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

impl List {
    fn field(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: &'a RawValue,
}

impl Front {
    /// The metadata of a result that is one page of a list.
    pub(crate) async fn list(
        &self,
        list: List,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<MetaObject, ErrorData> {
        let principal = self.principal(context)?;
        let entries = match list {
            List::Tools => self.direct_tools(&principal, context).await,
            List::Prompts => self.direct_prompts(&principal, context).await,
            List::Resources | List::ResourceTemplates => {
                self.direct_resources(&principal, context, list).await
            }
        };
        let start = match request.and_then(|request| request.cursor) {
            None => 0,
            Some(cursor) => {
                let start = cursor.parse().ok().filter(|start| *start < entries.len());
                start.ok_or_else(|| {
                    ErrorData::invalid_params("there is no such page; list from the start", None)
                })?
            }
        };
        let mut bytes = 0;
        let fits = |entry: &&String| {
            bytes += entry.len();
            bytes <= PAGE_BYTES
        };
        let page: Vec<&str> =
            entries[start..].iter().take(PAGE_ENTRIES).take_while(fits).map(String::as_str).collect();
        // A server's entry is never that large.
        let end = start + page.len().max(1);
        let cursor = if end < entries.len() { format!(r#","nextCursor":"{end}""#) } else { String::new() };
        let kind = if calls_again(context) { r#""resultType":"complete","# } else { "" };
        let hints = match calls_again(context) {
            true => format!(r#","ttlMs":{TTL_MS},"cacheScope":"private""#),
            false => String::new(),
        };
        let (field, page) = (list.field(), page.join(","));
        Ok(raw::packed(&format!(r#"{{{kind}"{field}":[{page}]{cursor}{hints}}}"#)))
    }

    /// Ours, and those of servers, as far as the client may know of them.
    async fn direct_tools(&self, principal: &Principal, context: &RequestContext<RoleServer>) -> Vec<String> {
        self.tools_for(principal, client(principal, context).as_ref()).await
    }

    pub(super) async fn tools_for(&self, principal: &Principal, client: Option<&ClientName>) -> Vec<String> {
        let ours =
            self.own_tools().iter().filter_map(|tool| serde_json::to_string(tool).ok()).collect::<Vec<_>>();
        let names = self.tool_names(true).await;
        let gate = self.supervisor.gate();
        let scope = gate.direct_scope(principal);
        let mut entries = ours;
        for (server, connection, _) in gate.direct() {
            let Some(catalogue) = connection.known() else { continue };
            let shown = catalogue.tools.iter().filter(|tool| gate.shows(server, tool, client, &scope));
            entries.extend(
                shown.filter_map(|tool| {
                    renamed(tool.definition(), names.exposed(server, tool.name.as_str())?)
                }),
            );
        }
        entries
    }

    /// The names of all tools, whoever may know of them: of two clients none has another name for a tool.
    pub(super) async fn tool_names(&self, waits: bool) -> Arc<Names> {
        let gate = self.supervisor.gate();
        if waits {
            let first = gate.direct().map(|(_, connection, _)| connection.catalogue());
            join_all(first.map(|first| tokio::time::timeout(PATIENCE, first))).await;
        }
        let direct: Vec<(&ServerName, &str, Arc<Catalogue>)> = gate
            .direct()
            .filter_map(|(name, connection, prefix)| Some((name, prefix, connection.known()?)))
            .collect();
        self.direct.tool_names(&direct)
    }

    async fn direct_prompts(
        &self,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
    ) -> Vec<String> {
        let listed = self.listed(principal, context, Listing::Prompts).await;
        let names = prompt_names(&listed);
        let renamed = |(server, _, prompt, name): &Entry| renamed(prompt, names.exposed(server, name)?);
        listed.iter().filter_map(renamed).collect()
    }

    async fn direct_resources(
        &self,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
        list: List,
    ) -> Vec<String> {
        let templates = list == List::ResourceTemplates;
        self.resources(principal, context, templates)
            .await
            .into_iter()
            .map(|(_, resource, _)| resource)
            .collect()
    }

    /// Resources or their templates, each with its server and its URI. Of several with one URI the first server has it.
    pub(super) async fn resources(
        &self,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
        templates: bool,
    ) -> Vec<(ServerName, String, String)> {
        #[derive(Deserialize)]
        struct Resource {
            #[serde(alias = "uriTemplate")]
            uri: String,
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut resources = Vec::new();
        for (server, _, entries) in self.entries(principal, context, Listing::Resources).await {
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
        principal: &Principal,
        context: &RequestContext<RoleServer>,
        listing: Listing,
    ) -> Vec<Entry> {
        let mut listed = Vec::new();
        for (server, prefix, entries) in self.entries(principal, context, listing).await {
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

    /// Asks all servers at once; one that does not answer is left out.
    async fn entries(
        &self,
        principal: &Principal,
        context: &RequestContext<RoleServer>,
        listing: Listing,
    ) -> Vec<(ServerName, String, lockhouse_gate::Entries)> {
        let gate = self.supervisor.gate();
        let ask = gate.direct().map(|(server, _, prefix)| async move {
            let (line, _followed) = self.line(principal, context);
            let entries = self.supervisor.list_directly(line, server, listing).await?;
            Some((server.clone(), prefix.to_owned(), entries))
        });
        join_all(ask).await.into_iter().flatten().collect()
    }
}

/// Server, what stands before its names, the entry, and its name.
pub(super) type Entry = (ServerName, String, String, String);

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

/// An object with members of ours before its own.
pub(super) fn with_members(object: &str, members: &JsonObject) -> String {
    let Some(rest) = object.trim_start().strip_prefix('{') else { return object.to_owned() };
    let members = serde_json::to_string(members).unwrap_or_default();
    let members = members.strip_prefix('{').and_then(|members| members.strip_suffix('}')).unwrap_or_default();
    let comma = if members.is_empty() || rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{{members}{comma}{rest}")
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

    #[test]
    fn members_are_put_before_others() {
        let members = JsonObject::from_iter([("resultType".to_owned(), "complete".into())]);
        assert_eq!(with_members(r#" {"a":1}"#, &members), r#"{"resultType":"complete","a":1}"#);
        assert_eq!(with_members("{ }", &members), r#"{"resultType":"complete" }"#);
        assert_eq!(with_members(r#"{"a":1}"#, &JsonObject::new()), r#"{"a":1}"#);
    }
}
