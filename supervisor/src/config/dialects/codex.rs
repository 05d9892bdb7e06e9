//! Codex: `[mcp_servers.NAME]`. Secrets are named, and nothing is expanded.

use super::fields::Fields;
use super::mcp_servers::{command, reach, refuse_disabled, refuse_old_transport};
use crate::config::entry::{Entry, EntryUrl};
use crate::config::left_out::LeftOut;
use crate::config::references::{Reference, Template};

pub(super) fn entry(fields: Fields<'_>) -> Result<Entry, LeftOut> {
    refuse_disabled(fields)?;
    let mut command = command(fields)?;
    if let Some(command) = &mut command {
        for name in passed_on(fields)? {
            command.environment.entry(name.clone()).or_insert_with(|| from_environment(name));
        }
    }
    let mut entry = Entry::new(reach(command, http(fields)?)?);
    entry.limits.start_timeout = match fields.time("startup_timeout_sec", 1.0)? {
        None => fields.time("startup_timeout_ms", 0.001)?,
        time => time,
    };
    entry.limits.call_timeout = fields.time("tool_timeout_sec", 1.0)?;
    entry.tools.only = fields.names("enabled_tools")?;
    entry.tools.except = fields.names("disabled_tools")?.unwrap_or_default();
    Ok(entry)
}

fn from_environment(name: String) -> Template {
    Template::reference(Reference::Environment { name, default: None })
}

/// `env_vars`: what of Codex's own environment the server gets. One that is not set is not passed on.
fn passed_on(fields: Fields<'_>) -> Result<Vec<String>, LeftOut> {
    let Some(node) = fields.get("env_vars") else { return Ok(Vec::new()) };
    let expected = || LeftOut::Unexpected { key: "env_vars".into(), expected: "a list of names" };
    let mut names = Vec::new();
    for node in node.list().ok_or_else(expected)? {
        let named =
            node.table().and_then(|table| super::tree::get(table, "name")).and_then(|node| node.text());
        names.push(node.text().or(named).ok_or_else(expected)?.to_owned());
    }
    names.retain(|name| fields.place.surroundings.environment.contains_key(name));
    Ok(names)
}

fn http(fields: Fields<'_>) -> Result<Option<EntryUrl>, LeftOut> {
    let Some(url) = fields.template("url")? else { return Ok(None) };
    refuse_old_transport(&url)?;
    let mut headers = fields.map("http_headers")?;
    if let Some(named) = fields.below("env_http_headers")? {
        for (key, _) in named.table {
            let name = named.text(&key.name)?.unwrap_or_default();
            headers.insert(key.name.clone(), from_environment(name.to_owned()));
        }
    }
    let bearer_token = fields.text("bearer_token_env_var")?.map(|name| from_environment(name.to_owned()));
    Ok(Some(EntryUrl { url, headers, bearer_token, oauth: None }))
}
