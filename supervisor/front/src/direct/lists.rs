//! What an AI client is shown of servers that it has directly: lists, page by page.

use lockhouse_messages::{List, Request, Response};
use rmcp::model::{ErrorData, JsonObject, MetaObject, PaginatedRequestParams};
use rmcp::service::{RequestContext, RoleServer};

use super::raw;
use crate::{Front, calls_again};

/// How long an AI client may take a list for what it is. It is told when one changes, if it wants to be.
const TTL_MS: u64 = 60_000;
/// Entries of one page, and their bytes.
const PAGE_ENTRIES: usize = 1_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

impl Front {
    /// The metadata of a result that is one page of a list.
    pub(crate) async fn list(
        &self,
        list: List,
        request: Option<PaginatedRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<MetaObject, ErrorData> {
        let principal = self.principal(context)?;
        let exchange = self.open_direct(&principal, context, Request::List(list));
        let Response::Entries(listed) = exchange.response().await else {
            return Err(ErrorData::internal_error("the list broke", None));
        };
        let entries: Vec<String> = match list {
            List::Tools => self.own_tools_json().chain(listed).collect(),
            _ => listed,
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
        let (field, page) = (field(list), page.join(","));
        Ok(raw::packed(&format!(r#"{{{kind}"{field}":[{page}]{cursor}{hints}}}"#)))
    }

    /// Our own tools, before those of servers.
    fn own_tools_json(&self) -> impl Iterator<Item = String> {
        self.own_tools().into_iter().filter_map(|tool| serde_json::to_string(&tool).ok())
    }
}

/// As MCP names it in results.
fn field(list: List) -> &'static str {
    match list {
        List::Tools => "tools",
        List::Resources => "resources",
        List::ResourceTemplates => "resourceTemplates",
        List::Prompts => "prompts",
    }
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
    fn members_are_put_before_others() {
        let members = JsonObject::from_iter([("resultType".to_owned(), "complete".into())]);
        assert_eq!(with_members(r#" {"a":1}"#, &members), r#"{"resultType":"complete","a":1}"#);
        assert_eq!(with_members("{ }", &members), r#"{"resultType":"complete" }"#);
        assert_eq!(with_members(r#"{"a":1}"#, &JsonObject::new()), r#"{"a":1}"#);
    }
}
