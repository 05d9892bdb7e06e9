//! Warnings about servers over HTTP+SSE, a transport that MCP has deprecated.

use std::collections::BTreeMap;

use lockhouse_protocol::ServerName;
use lockhouse_upstream::ServerDefinition;

/// Returns the warning about a server over HTTP+SSE. `server` is its name, and may have its place in parentheses.
pub fn sse_warning(server: &str) -> String {
    format!(
        "server {server} uses HTTP+SSE, which MCP has deprecated: ask its vendor for the URL of streamable HTTP, often the same with /mcp \
         at its end, and give that without `transport`"
    )
}

/// Returns the warnings about those of the servers that use HTTP+SSE.
pub(super) fn sse_warnings(
    servers: &BTreeMap<ServerName, ServerDefinition>,
) -> impl Iterator<Item = String> + '_ {
    let found = servers.iter().filter(|(_, server)| server.endpoint.uses_sse());
    found.map(|(name, server)| sse_warning(&format!("{name} ({})", server.origin)))
}
