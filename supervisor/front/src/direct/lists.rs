//! Serves the lists of tools, resources and prompts in pages. The lists contain the entries of directly exposed
//! servers; the list of tools also contains Lockhouse's own tools.

use lockhouse_mcp::server::RequestContext;
use lockhouse_messages::{ListKind, Request, Response};
use rmcp::model::{ErrorData, JsonObject, PaginatedRequestParams};

use super::{on_one_line, request_error};
use crate::{McpHandler, client_name};

/// How long an AI client may cache a list, in milliseconds. A client that subscribes to changes of the
/// list learns of them earlier.
const TTL_MS: u64 = 60_000;
/// Maximum number of entries in one page of a list (`PAGE_ENTRIES`), and maximum size in bytes of the entries of one
/// page together (`PAGE_BYTES`).
const PAGE_ENTRIES: usize = 1_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

impl McpHandler {
    /// Returns one page of a list of tools, resources or prompts.
    pub(crate) async fn list(
        &self,
        list: ListKind,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext,
    ) -> Result<String, ErrorData> {
        let field = result_field(list);
        if list != ListKind::Tools {
            self.require_direct_servers(method(list))?;
        }
        let access = self.access(context)?;
        let exchange = self.open_direct(&access, context, None, Request::List(list)).await;
        let upstream_entries = match exchange.response().await {
            Response::Entries(entries) => entries,
            other => return Err(request_error(other.into_failure(), "the list")),
        };
        let entries: Vec<String> = match list {
            ListKind::Tools => {
                let own = self.builtin_tools(&access, client_name(&access, context)).await;
                let own = own.into_iter().filter_map(|tool| serde_json::to_string(&tool).ok());
                own.chain(upstream_entries).collect()
            }
            ListKind::Resources | ListKind::ResourceTemplates | ListKind::Prompts => upstream_entries,
        };
        let start = match request.and_then(|request| request.cursor) {
            None => 0,
            Some(cursor) => {
                let start = cursor.parse().ok().filter(|start| *start < entries.len());
                start.ok_or_else(|| {
                    ErrorData::invalid_params("the cursor is not valid; list from the start", None)
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
        // At least one entry per page. No entry of an upstream server exceeds `PAGE_BYTES`.
        let end = start + page.len().max(1);
        let cursor = if end < entries.len() { format!(r#","nextCursor":"{end}""#) } else { String::new() };
        let kind = if context.is_modern() { r#""resultType":"complete","# } else { "" };
        let hints = match context.is_modern() {
            true => format!(r#","ttlMs":{TTL_MS},"cacheScope":"private""#),
            false => String::new(),
        };
        let page = page.join(",");
        Ok(on_one_line(format!(r#"{{{kind}"{field}":[{page}]{cursor}{hints}}}"#)))
    }
}

/// Returns the name of the field that contains the list in an MCP result, such as `tools`.
fn result_field(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "tools",
        ListKind::Resources => "resources",
        ListKind::ResourceTemplates => "resourceTemplates",
        ListKind::Prompts => "prompts",
    }
}

/// Returns the method that asks for a list.
fn method(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "tools/list",
        ListKind::Resources => "resources/list",
        ListKind::ResourceTemplates => "resources/templates/list",
        ListKind::Prompts => "prompts/list",
    }
}

/// Inserts members at the start of a JSON object in text form. Returns any other text unchanged.
pub(super) fn prepend_members(mut object: String, members: &JsonObject) -> String {
    let start = object.len() - object.trim_start().len();
    let Some(rest) = object[start..].strip_prefix('{') else { return object };
    let members = serde_json::to_string(members).unwrap_or_default();
    let members = members.strip_prefix('{').and_then(|members| members.strip_suffix('}')).unwrap_or_default();
    let comma = if members.is_empty() || rest.trim_start().starts_with('}') { "" } else { "," };
    // A large result stays where it is in memory.
    object.insert_str(start + 1, &format!("{members}{comma}"));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_inserted_at_the_start() {
        let members = JsonObject::from_iter([("resultType".to_owned(), "complete".into())]);
        assert_eq!(prepend_members(r#" {"a":1}"#.into(), &members), r#" {"resultType":"complete","a":1}"#);
        assert_eq!(prepend_members("{ }".into(), &members), r#"{"resultType":"complete" }"#);
        assert_eq!(prepend_members(r#"{"a":1}"#.into(), &JsonObject::new()), r#"{"a":1}"#);
    }
}
