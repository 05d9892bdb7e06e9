//! OpenCode: `mcp.NAME` in its first version, `mcp.servers.NAME` in the second. A command is one list.

use super::fields::Fields;
use super::mcp_servers::{reach, refuse_disabled, url};
use crate::config::entry::{Entry, EntryCommand};
use crate::config::left_out::LeftOut;

const MILLISECONDS: f64 = 0.001;

pub(super) fn entry(fields: Fields<'_>) -> Result<Entry, LeftOut> {
    refuse_disabled(fields)?;
    let mut entry = Entry::new(reach(command(fields)?, url(fields, "url")?)?);
    if fields.get("timeout").is_some_and(|node| node.table().is_some()) {
        let timeout = fields.below("timeout")?;
        let time = |key| timeout.map_or(Ok(None), |timeout| timeout.time(key, MILLISECONDS));
        entry.limits.start_timeout = time("startup")?;
        entry.limits.call_timeout = time("request")?;
    } else {
        entry.limits.start_timeout = fields.time("timeout", MILLISECONDS)?;
    }
    Ok(entry)
}

fn command(fields: Fields<'_>) -> Result<Option<EntryCommand>, LeftOut> {
    if !fields.has("command") {
        return Ok(None);
    }
    let mut words = fields.templates("command")?.into_iter();
    let program = words.next();
    let program = program
        .ok_or(LeftOut::Unexpected { key: "command".into(), expected: "a program and its arguments" })?;
    Ok(Some(EntryCommand {
        program,
        arguments: words.collect(),
        environment: fields.map("environment")?,
        directory: fields.template("cwd")?,
        ..EntryCommand::default()
    }))
}
