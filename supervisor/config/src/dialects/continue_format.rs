//! Reads the MCP servers of Continue: a list in YAML, in which each server has its `name`.

use super::document_tree::{Key, Node, Table, Value, get};
use super::fields::Fields;
use super::mcp_servers;
use crate::server_entry::{EntryEndpoint, ServerEntry};
use crate::skip_reason::SkipReason;

const MILLISECONDS: f64 = 0.001;

/// Converts the list of servers to a table by name. A server without a name is left out, as Continue does.
pub(super) fn by_name(list: &[Node]) -> Table {
    let named = |node: &Node| {
        let name = get(node.table()?, "name")?;
        Some((Key { at: name.at.clone(), name: name.text()?.to_owned() }, node.clone()))
    };
    list.iter().filter_map(named).collect()
}

/// Replaces the list `mcpServers` of a document by a table whose keys are the names of the servers.
pub(super) fn with_named_servers(mut document: Node) -> Node {
    if let Value::Table(table) = &mut document.value {
        for (key, node) in table.iter_mut().filter(|(key, _)| key.name == "mcpServers") {
            if let Some(list) = node.list() {
                *node = Node { at: key.at.clone(), value: Value::Table(by_name(list)) };
            }
        }
    }
    document
}

pub(super) fn entry(fields: Fields<'_>) -> Result<ServerEntry, SkipReason> {
    let mut entry = mcp_servers::entry(fields)?;
    entry.limits.start_timeout = fields.time("connectionTimeout", MILLISECONDS)?;
    if let (EntryEndpoint::Url(url), Some(options)) =
        (&mut entry.endpoint, fields.subtable("requestOptions")?)
    {
        url.headers.extend(options.map("headers")?);
    }
    Ok(entry)
}
