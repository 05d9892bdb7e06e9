//! Gemini CLI and Qwen: `httpUrl` is streamable HTTP, `url` the old transport unless `type` says otherwise.

use super::fields::Fields;
use super::mcp_servers::{command, reach, refuse_disabled, url};
use super::tree::{Node, Table, get};
use crate::config::entry::Entry;
use crate::config::left_out::LeftOut;

const USE_HTTP_URL: &str = "write the URL of its streamable HTTP endpoint as httpUrl";
const MILLISECONDS: f64 = 0.001;

pub(super) fn entry(fields: Fields<'_>) -> Result<Entry, LeftOut> {
    refuse_disabled(fields)?;
    if fields.text("authProviderType")?.is_some_and(|provider| provider != "dynamic_discovery") {
        let reason = "authProviderType: Google credentials are not used here; put a token into headers";
        return Err(LeftOut::Unsupported(reason));
    }
    if fields.has("tcp") {
        return Err(LeftOut::Unsupported("tcp: WebSocket is not a transport of MCP; use httpUrl"));
    }
    let is_http = fields.text("type")? == Some("http");
    if fields.has("url") && !fields.has("httpUrl") && !is_http {
        return Err(LeftOut::OldTransport(USE_HTTP_URL));
    }
    let http = match url(fields, "httpUrl")? {
        Some(http) => Some(http),
        None => url(fields, "url")?,
    };
    let mut entry = Entry::new(reach(command(fields)?, http)?);
    entry.limits.call_timeout = fields.time("timeout", MILLISECONDS)?;
    entry.tools.only =
        fields.names("includeTools")?.map(|names| names.iter().map(|name| bare(name)).collect());
    let except = fields.names("excludeTools")?.unwrap_or_default();
    entry.tools.except = except.iter().map(|name| bare(name)).collect();
    Ok(entry)
}

/// `tool(arguments)` narrows by arguments, which is the policy's business here.
fn bare(name: &str) -> String {
    name.split('(').next().unwrap_or(name).to_owned()
}

/// Whether the settings switch a server off by name.
pub(super) fn excludes(root: &Table, name: &str) -> bool {
    let Some(mcp) = get(root, "mcp").and_then(Node::table) else { return false };
    let names = |key: &str| get(mcp, key).and_then(Node::list);
    let has = |list: &[Node]| list.iter().any(|node| node.text() == Some(name));
    names("excluded").is_some_and(has) || names("allowed").is_some_and(|list| !list.is_empty() && !has(list))
}
