//! Reads the table of the built-in server `files` in Lockhouse's own configuration.

use std::ops::Range;

use lockhouse_host_files::{FILE_PATTERNS_MAX, FILES_NAMES, FilePattern};

use super::document_tree::{Key, Node, Table, get};
use super::fields::Fields;
use super::own_format::{EntryFault, nearest, whole_number};
use crate::files_table::{FILE_MIB, FilesTable};
use crate::server_keys::{self, FILES_KEYS};
use crate::skip_reason::SkipReason;

/// Whether a `[servers.NAME]` table is the one of the built-in server `files`, and not of an upstream server: it has one of
/// the names of that server, and neither a command nor a URL.
pub(super) fn is_files_table(key: &Key, table: &Table) -> bool {
    let has = |name| get(table, name).is_some();
    FILES_NAMES.contains(&key.name.as_str())
        && !(has("command") || has("url"))
        && (has("read") || has("write"))
}

/// Parses the table of the built-in server.
///
/// # Errors
/// Returns one fault for each unknown key, and the first fault of any other kind.
pub(super) fn parse(key: &Key, fields: Fields<'_>) -> Result<FilesTable, Vec<EntryFault>> {
    let known: Vec<&str> = FILES_KEYS.iter().map(|key| key.name).collect();
    let unknown = fields.table.iter().filter(|(key, _)| !known.contains(&key.name.as_str()));
    let mut faults: Vec<EntryFault> = unknown
        .map(|(unknown, _)| EntryFault {
            at: unknown.at.clone(),
            label: format!("servers.{}: unknown key `{}`", key.name, unknown.name),
            help: nearest(&unknown.name, &known),
        })
        .collect();
    match table(fields) {
        Ok(table) if faults.is_empty() => return Ok(table),
        Ok(_) => {}
        Err((at, label)) => faults.push(EntryFault {
            at: at.unwrap_or(key.at.clone()),
            label: format!("servers.{}: {label}", key.name),
            help: None,
        }),
    }
    Err(faults)
}

/// A fault: the byte range of the value, if it concerns one, and the message.
type Fault = (Option<Range<usize>>, String);

fn table(fields: Fields<'_>) -> Result<FilesTable, Fault> {
    let about = |name: &'static str| {
        move |reason: SkipReason| (get(fields.table, name).map(|node| node.at.clone()), reason.to_string())
    };
    let file_mib = whole_number(fields, &server_keys::FILE_MIB).map_err(about("file_mib"))?;
    let read = patterns(fields, "read")?;
    let write = patterns(fields, "write")?;
    Ok(FilesTable { read, write, file_mib: file_mib.unwrap_or(FILE_MIB) })
}

fn patterns(fields: Fields<'_>, name: &str) -> Result<Vec<FilePattern>, Fault> {
    let Some(node) = fields.get(name) else { return Ok(Vec::new()) };
    let fault = |node: &Node, text: String| (Some(node.at.clone()), format!("{name}: {text}"));
    let list = node.list().filter(|list| list.len() <= FILE_PATTERNS_MAX);
    let list =
        list.ok_or_else(|| fault(node, format!("expected a list of at most {FILE_PATTERNS_MAX} strings")))?;
    let pattern = |node: &Node| {
        let text = node.text().ok_or_else(|| fault(node, "expected a string".into()))?;
        let path = fields.file.environment.for_files().expand_home(text);
        FilePattern::parse(&path.to_string_lossy()).map_err(|invalid| fault(node, invalid.to_string()))
    };
    list.iter().map(pattern).collect()
}
