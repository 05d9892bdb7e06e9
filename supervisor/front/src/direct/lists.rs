//! Serves the lists of tools, resources and prompts in pages. The lists contain the entries of directly exposed
//! servers; the list of tools also contains Lockhouse's own tools.

use lockhouse_messages::{ListKind, Request, Response};
use rmcp::model::{ErrorData, JsonObject, MetaObject, PaginatedRequestParams};
use rmcp::service::{RequestContext, RoleServer};

use super::{raw_results, request_error};
use crate::{McpHandler, client_name, supports_input_required};

/// How long an AI client may cache a list, in milliseconds. A client that subscribes to changes of the
/// list learns of them earlier.
const TTL_MS: u64 = 60_000;
/// Maximum number of entries in one page of a list (`PAGE_ENTRIES`), and maximum size in bytes of the entries of one
/// page together (`PAGE_BYTES`).
const PAGE_ENTRIES: usize = 1_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

impl McpHandler {
    /// Returns one page of a list of tools, resources or prompts, packed into the metadata of an MCP result (see
    /// [`raw_results`]).
    pub(crate) async fn list(
        &self,
        list: ListKind,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<MetaObject, ErrorData> {
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
        let kind = if supports_input_required(context) { r#""resultType":"complete","# } else { "" };
        let hints = match supports_input_required(context) {
            true => format!(r#","ttlMs":{TTL_MS},"cacheScope":"private""#),
            false => String::new(),
        };
        let (field, page) = (result_field(list), page.join(","));
        raw_results::deliver(format!(r#"{{{kind}"{field}":[{page}]{cursor}{hints}}}"#), context)
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

/// Inserts members at the start of a JSON object in text form. Returns any other text unchanged.
pub(super) fn prepend_members(object: &str, members: &JsonObject) -> String {
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
    fn members_are_inserted_at_the_start() {
        let members = JsonObject::from_iter([("resultType".to_owned(), "complete".into())]);
        assert_eq!(prepend_members(r#" {"a":1}"#, &members), r#"{"resultType":"complete","a":1}"#);
        assert_eq!(prepend_members("{ }", &members), r#"{"resultType":"complete" }"#);
        assert_eq!(prepend_members(r#"{"a":1}"#, &JsonObject::new()), r#"{"a":1}"#);
    }
}
