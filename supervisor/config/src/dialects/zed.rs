//! Reads the MCP servers of Zed, in `context_servers`. Older versions of Zed write the command of a server as a table.

use super::fields::Fields;
use super::mcp_servers::{command, endpoint, refuse_disabled, url};
use crate::server_entry::{EntryCommand, ServerEntry};
use crate::skip_reason::SkipReason;

pub(super) fn entry(fields: Fields<'_>) -> Result<ServerEntry, SkipReason> {
    refuse_disabled(fields)?;
    if fields.text("source")? == Some("extension") || (fields.has("settings") && !fields.has("command")) {
        return Err(SkipReason::Extension);
    }
    let older = fields.get("command").is_some_and(|node| node.table().is_some());
    let command = if older {
        fields.subtable("command")?.map(path_and_arguments).transpose()?
    } else {
        command(fields)?
    };
    Ok(ServerEntry::new(endpoint(command, url(fields, "url")?)?))
}

fn path_and_arguments(fields: Fields<'_>) -> Result<EntryCommand, SkipReason> {
    Ok(EntryCommand {
        program: fields.template("path")?.ok_or(SkipReason::NoEndpoint)?,
        arguments: fields.templates("args")?,
        environment: fields.map("env")?,
        ..EntryCommand::default()
    })
}
