//! Reads the table `[servers."*"]` of a requirements file.

use super::document_tree::{Key, Node};
use super::fields::Fields;
use super::own_format::{EntryFault, confinement, exposure, limits, nearest, on_change};
use super::placeholder_syntax::PlaceholderSyntax;
use super::{SourceFile, own_format};
use crate::every_server::EveryServer;
use crate::placeholders::Environment;
use crate::server_entry::proxy_address;
use crate::skip_reason::SkipReason;

/// The name of the table.
pub(super) const EVERY: &str = "*";
/// The keys of the table.
const KEYS: [&str; 13] = [
    "start_timeout_seconds",
    "call_timeout_seconds",
    "call_timeout_max_seconds",
    "parallel_calls",
    "queue",
    "queue_timeout_seconds",
    "sandbox",
    "expose",
    "on_change",
    "share",
    "disabled_tools",
    "proxy",
    "env",
];

/// Parses the table.
///
/// # Errors
/// Returns one fault for each unknown key, and the first fault of any other kind.
pub(super) fn parse(key: &Key, node: &Node, file: &SourceFile<'_>) -> Result<EveryServer, Vec<EntryFault>> {
    let fault = |label: String| EntryFault { at: key.at.clone(), label, help: None };
    let Some(table) = node.table() else {
        return Err(vec![fault("servers.\"*\": expected a table".into())]);
    };
    let unknown = table.iter().filter(|(key, _)| !KEYS.contains(&key.name.as_str()));
    let mut faults: Vec<EntryFault> = unknown
        .map(|(unknown, _)| EntryFault {
            at: unknown.at.clone(),
            label: format!("servers.\"*\": `{}` is not a key for every server", unknown.name),
            help: nearest(&unknown.name, &KEYS),
        })
        .collect();
    match every_server(Fields { table, syntax: PlaceholderSyntax::Own, file }) {
        Ok(every) if faults.is_empty() => return Ok(every),
        Ok(_) => {}
        Err(reason) => faults.push(EntryFault {
            at: own_format::locate(table, &reason).unwrap_or(key.at.clone()),
            ..fault(format!("servers.\"*\": {reason}"))
        }),
    }
    Err(faults)
}

fn every_server(fields: Fields<'_>) -> Result<EveryServer, SkipReason> {
    let unexpected = |key: &str, expected| SkipReason::Unexpected { key: key.into(), expected };
    let proxy = match fields.text("proxy")? {
        Some(text) => Some(proxy_address(text).ok_or_else(|| unexpected("proxy", "http(s)://HOST:PORT"))?),
        None => None,
    };
    let environment: &Environment = fields.file.environment;
    Ok(EveryServer {
        limits: limits(fields)?,
        confinement: confinement(fields)?.map(|confinement| confinement.in_home(environment.home.as_deref())),
        exposure: exposure(fields)?,
        on_change: on_change(fields)?,
        is_shared: fields.flag("share")?,
        disabled_tools: fields.names("disabled_tools")?.unwrap_or_default(),
        proxy,
        variables: fields.names("env")?,
    })
}
