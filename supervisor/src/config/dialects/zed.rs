//! Zed: `context_servers`, whose command was once a table of its own.

use super::fields::Fields;
use super::mcp_servers::{command, reach, refuse_disabled, url};
use crate::config::entry::{Entry, EntryCommand};
use crate::config::left_out::LeftOut;

pub(super) fn entry(fields: Fields<'_>) -> Result<Entry, LeftOut> {
    refuse_disabled(fields)?;
    if fields.text("source")? == Some("extension") || (fields.has("settings") && !fields.has("command")) {
        return Err(LeftOut::Extension);
    }
    let older = fields.get("command").is_some_and(|node| node.table().is_some());
    let command =
        if older { fields.below("command")?.map(path_and_arguments).transpose()? } else { command(fields)? };
    Ok(Entry::new(reach(command, url(fields, "url")?)?))
}

fn path_and_arguments(fields: Fields<'_>) -> Result<EntryCommand, LeftOut> {
    Ok(EntryCommand {
        program: fields.template("path")?.ok_or(LeftOut::NoReach)?,
        arguments: fields.templates("args")?,
        environment: fields.map("env")?,
        ..EntryCommand::default()
    })
}
