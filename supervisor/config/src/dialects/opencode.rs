//! Reads the MCP servers of OpenCode: `mcp.NAME` in version 1, `mcp.servers.NAME` in version 2. A server's command is a
//! list that begins with the program.

use super::fields::Fields;
use super::mcp_servers::{endpoint, refuse_disabled, url};
use crate::server_entry::{EntryCommand, ServerEntry};
use crate::skip_reason::SkipReason;

const MILLISECONDS: f64 = 0.001;

pub(super) fn entry(fields: Fields<'_>) -> Result<ServerEntry, SkipReason> {
    refuse_disabled(fields)?;
    let mut entry = ServerEntry::new(endpoint(command(fields)?, url(fields, "url")?)?);
    if fields.get("timeout").is_some_and(|node| node.table().is_some()) {
        let timeout = fields.subtable("timeout")?;
        let time = |key| timeout.map_or(Ok(None), |timeout| timeout.time(key, MILLISECONDS));
        entry.limits.start_timeout = time("startup")?;
        entry.limits.call_timeout = time("request")?;
    } else {
        entry.limits.start_timeout = fields.time("timeout", MILLISECONDS)?;
    }
    Ok(entry)
}

fn command(fields: Fields<'_>) -> Result<Option<EntryCommand>, SkipReason> {
    if !fields.has("command") {
        return Ok(None);
    }
    let mut words = fields.templates("command")?.into_iter();
    let program = words.next();
    let program = program
        .ok_or(SkipReason::Unexpected { key: "command".into(), expected: "a program and its arguments" })?;
    Ok(Some(EntryCommand {
        program,
        arguments: words.collect(),
        environment: fields.map("environment")?,
        directory: fields.template("cwd")?,
        ..EntryCommand::default()
    }))
}
