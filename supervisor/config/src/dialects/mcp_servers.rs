//! Reads MCP servers in the format of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf and compatible programs:
//! `command`, `args` and `env`, or a URL.

use lockhouse_upstream::HttpTransport;

use super::fields::Fields;
use super::not_imported;
use super::placeholder_syntax::PlaceholderSyntax;
use crate::placeholders::Template;
use crate::server_entry::{EntryCommand, EntryEndpoint, EntryOAuth, EntryUrl, ServerEntry};
use crate::skip_reason::SkipReason;

/// The advice for a server over HTTP+SSE.
pub(super) const USE_STREAMABLE: &str =
    "give the URL of its streamable HTTP endpoint, often the same with /mcp at its end, and type \"http\"";
/// The type of servers over HTTP+SSE.
const SSE: &str = "sse";
const MILLISECONDS: f64 = 0.001;

pub(super) fn entry(fields: Fields<'_>) -> Result<ServerEntry, SkipReason> {
    refuse_disabled(fields)?;
    if fields.has("headersHelper") {
        let reason = "headersHelper: programs that make headers are not run; put the header into headers";
        return Err(SkipReason::Unsupported(reason));
    }
    let kind = fields.text("type")?.or(fields.text("transport").unwrap_or_default());
    match kind {
        None
        | Some("stdio" | "local" | "http" | "streamable-http" | "streamableHttp" | "streamable_http" | SSE) =>
            {}
        Some(_) => return Err(SkipReason::Unexpected { key: "type".into(), expected: "stdio or http" }),
    }
    // Cline writes the endpoint as a table of its own.
    let nested = match fields.get("transport").is_some_and(|node| node.table().is_some()) {
        true => fields.subtable("transport")?,
        false => None,
    };
    let reach = nested.unwrap_or(fields);
    let mut url = url(reach, "url")?.or(url(reach, "serverUrl")?);
    if kind == Some(SSE) || reach.text("type")? == Some(SSE) {
        let expected = "stdio or http, or a url with sse";
        let without_url = || SkipReason::Unexpected { key: "type".into(), expected };
        url = Some(url.ok_or_else(without_url)?.over_sse());
    }
    let mut entry = ServerEntry::new(endpoint(command(reach)?, url)?);
    if fields.syntax == PlaceholderSyntax::Braces {
        entry.limits.call_timeout = fields.time("timeout", MILLISECONDS)?;
    }
    entry.tools.except = fields.names("disabledTools")?.unwrap_or_default();
    // The filter of Copilot CLI, in which "*" stands for all tools.
    entry.tools.only = match fields.get("tools").is_some_and(|node| node.list().is_some()) {
        true => fields.names("tools")?.filter(|names| !names.iter().any(|name| name == "*")),
        false => None,
    };
    entry.not_imported = not_imported::oauth_keys(fields)?;
    Ok(entry)
}

pub(super) fn refuse_disabled(fields: Fields<'_>) -> Result<(), SkipReason> {
    let is_off = fields.flag("disabled")? == Some(true) || fields.flag("enabled")? == Some(false);
    if is_off { Err(SkipReason::Disabled) } else { Ok(()) }
}

/// Combines the command and the URL of a server entry into its endpoint. Returns an error unless exactly one of them is
/// given.
pub(super) fn endpoint(
    command: Option<EntryCommand>,
    url: Option<EntryUrl>,
) -> Result<EntryEndpoint, SkipReason> {
    match (command, url) {
        (Some(command), None) => Ok(EntryEndpoint::Command(command)),
        (None, Some(url)) => Ok(EntryEndpoint::Url(url)),
        (None, None) => Err(SkipReason::NoEndpoint),
        (Some(_), Some(_)) => Err(SkipReason::TwoEndpoints),
    }
}

pub(super) fn command(fields: Fields<'_>) -> Result<Option<EntryCommand>, SkipReason> {
    let Some(program) = fields.template("command")? else { return Ok(None) };
    let reads_env_file = fields.syntax == PlaceholderSyntax::Editor;
    Ok(Some(EntryCommand {
        program,
        arguments: fields.templates("args")?,
        environment: fields.map("env")?,
        env_file: if reads_env_file { fields.template("envFile")? } else { None },
        directory: fields.template("cwd")?,
        ..EntryCommand::default()
    }))
}

pub(super) fn url(fields: Fields<'_>, key: &str) -> Result<Option<EntryUrl>, SkipReason> {
    let Some(url) = fields.template(key)? else { return Ok(None) };
    let (transport, headers) = (transport_of(&url), fields.map("headers")?);
    Ok(Some(EntryUrl { url, transport, headers, bearer_token: None, oauth: oauth(fields)?, proxy: None }))
}

/// Returns the transport of the server at a URL. One whose path ends in `/sse` uses HTTP+SSE, even if the file names
/// another transport.
pub(super) fn transport_of(url: &Template) -> HttpTransport {
    let url = url.to_own_syntax();
    let path = url.split(['?', '#']).next().unwrap_or_default();
    if path.trim_end_matches('/').ends_with("/sse") { HttpTransport::Sse } else { HttpTransport::Streamable }
}

/// Reads the settings of an OAuth client that was registered manually. Each AI client uses different key names for
/// them.
pub(super) fn oauth(fields: Fields<'_>) -> Result<Option<EntryOAuth>, SkipReason> {
    let below = |key: &str| {
        if fields.get(key).is_some_and(|node| node.table().is_some()) {
            fields.subtable(key)
        } else {
            Ok(None)
        }
    };
    let Some(oauth) = below("oauth")?.or(below("auth")?) else { return Ok(None) };
    let either = |one: &str, other: &str, third: &str| -> Result<_, SkipReason> {
        Ok(oauth.template(one)?.or(oauth.template(other)?).or(oauth.template(third)?))
    };
    let scopes = match oauth.get("scopes").or(oauth.get("scope")) {
        Some(node) if node.text().is_some() => {
            node.text().unwrap_or_default().split_whitespace().map(str::to_owned).collect()
        }
        _ => oauth.names("scopes")?.unwrap_or_default(),
    };
    let port = oauth.number("callbackPort")?.filter(|port| (1.0..=65_535.0).contains(port));
    Ok(Some(EntryOAuth {
        client_id: either("clientId", "CLIENT_ID", "client_id")?,
        client_secret: either("clientSecret", "CLIENT_SECRET", "client_secret")?,
        scopes,
        callback_port: port.map(|port| port as u16),
        ..EntryOAuth::default()
    }))
}
