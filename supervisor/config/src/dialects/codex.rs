//! Reads the `[mcp_servers.NAME]` tables of Codex. Codex configures secrets by the names of environment variables, and
//! expands no placeholders.

use super::fields::Fields;
use super::mcp_servers::{self, command, endpoint, refuse_disabled, transport_of};
use super::not_imported;
use crate::placeholders::{Placeholder, Template};
use crate::server_entry::{EntryUrl, ServerEntry};
use crate::skip_reason::SkipReason;

pub(super) fn entry(fields: Fields<'_>) -> Result<ServerEntry, SkipReason> {
    refuse_disabled(fields)?;
    let mut command = command(fields)?;
    let (set, unset): (Vec<String>, Vec<String>) = forwarded_variables(fields)?
        .into_iter()
        .partition(|name| fields.file.environment.variable(name).is_some());
    if let Some(command) = &mut command {
        for name in set {
            command.environment.entry(name.clone()).or_insert_with(|| from_environment(name));
        }
    }
    let mut entry = ServerEntry::new(endpoint(command, http(fields)?)?);
    entry.limits.start_timeout = match fields.time("startup_timeout_sec", 1.0)? {
        None => fields.time("startup_timeout_ms", 0.001)?,
        time => time,
    };
    entry.limits.call_timeout = fields.time("tool_timeout_sec", 1.0)?;
    entry.tools.only = fields.names("enabled_tools")?;
    entry.tools.except = fields.names("disabled_tools")?.unwrap_or_default();
    entry.not_imported = not_imported::codex_keys(fields, &unset);
    Ok(entry)
}

fn from_environment(name: String) -> Template {
    Template::placeholder(Placeholder::Environment { name, default: None })
}

/// Returns the names of environment variables in the key `env_vars`. The server receives those of them that are set in
/// the environment of Codex.
fn forwarded_variables(fields: Fields<'_>) -> Result<Vec<String>, SkipReason> {
    let Some(node) = fields.get("env_vars") else { return Ok(Vec::new()) };
    let expected = || SkipReason::Unexpected { key: "env_vars".into(), expected: "a list of names" };
    let mut names = Vec::new();
    for node in node.list().ok_or_else(expected)? {
        let named = node
            .table()
            .and_then(|table| super::document_tree::get(table, "name"))
            .and_then(|node| node.text());
        names.push(node.text().or(named).ok_or_else(expected)?.to_owned());
    }
    Ok(names)
}

fn http(fields: Fields<'_>) -> Result<Option<EntryUrl>, SkipReason> {
    let Some(url) = fields.template("url")? else { return Ok(None) };
    let mut headers = fields.map("http_headers")?;
    if let Some(named) = fields.subtable("env_http_headers")? {
        for (key, _) in named.table {
            let name = named.text(&key.name)?.unwrap_or_default();
            headers.insert(key.name.clone(), from_environment(name.to_owned()));
        }
    }
    let bearer_token = fields.text("bearer_token_env_var")?.map(|name| from_environment(name.to_owned()));
    let scopes = fields.names("scopes")?;
    let mut oauth = mcp_servers::oauth(fields)?;
    if let Some(scopes) = scopes {
        oauth.get_or_insert_default().scopes = scopes;
    }
    Ok(Some(EntryUrl { transport: transport_of(&url), url, headers, bearer_token, oauth, proxy: None }))
}
