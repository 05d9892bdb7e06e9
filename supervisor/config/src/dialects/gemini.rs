//! Reads the MCP servers of Gemini CLI and Qwen Code. The key `httpUrl` means streamable HTTP; `url` means HTTP+SSE
//! unless `type` says otherwise.

use super::document_tree::{Node, Table, get};
use super::fields::Fields;
use super::mcp_servers::{command, endpoint, refuse_disabled, url};
use super::not_imported;
use crate::server_entry::{EntryUrl, ServerEntry};
use crate::skip_reason::SkipReason;

/// The advice for a server over HTTP+SSE.
pub(super) const USE_HTTP_URL: &str = "write the URL of its streamable HTTP endpoint as httpUrl";
const MILLISECONDS: f64 = 0.001;

pub(super) fn entry(fields: Fields<'_>) -> Result<ServerEntry, SkipReason> {
    refuse_disabled(fields)?;
    if fields.text("authProviderType")?.is_some_and(|provider| provider != "dynamic_discovery") {
        let reason = "authProviderType: Google credentials are not used here; put a token into headers";
        return Err(SkipReason::Unsupported(reason));
    }
    if fields.has("tcp") {
        return Err(SkipReason::Unsupported("tcp: WebSocket is not a transport of MCP; use httpUrl"));
    }
    let is_http = fields.text("type")? == Some("http");
    let http = match url(fields, "httpUrl")? {
        Some(http) => Some(http),
        None if is_http => url(fields, "url")?,
        None => url(fields, "url")?.map(EntryUrl::over_sse),
    };
    let mut entry = ServerEntry::new(endpoint(command(fields)?, http)?);
    entry.limits.call_timeout = fields.time("timeout", MILLISECONDS)?;
    entry.tools.only =
        fields.names("includeTools")?.map(|names| names.iter().map(|name| bare(name)).collect());
    let except = fields.names("excludeTools")?.unwrap_or_default();
    entry.tools.except = except.iter().map(|name| bare(name)).collect();
    entry.not_imported = not_imported::oauth_keys(fields)?;
    Ok(entry)
}

/// Returns the tool's name from an entry of a tool filter, which can have the form `tool(arguments)`. The arguments are
/// ignored, since in Lockhouse only the policy restricts arguments.
fn bare(name: &str) -> String {
    name.split('(').next().unwrap_or(name).to_owned()
}

/// Whether the settings `mcp.excluded` or `mcp.allowed` disable the server `name`.
pub(super) fn excludes(root: &Table, name: &str) -> bool {
    let Some(mcp) = get(root, "mcp").and_then(Node::table) else { return false };
    let names = |key: &str| get(mcp, key).and_then(Node::list);
    let has = |list: &[Node]| list.iter().any(|node| node.text() == Some(name));
    names("excluded").is_some_and(has) || names("allowed").is_some_and(|list| !list.is_empty() && !has(list))
}
