//! Inserts the server entry that starts Lockhouse into the configuration file of Codex, which is TOML.

use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::{AiClient, Insertion, LaunchCommand, NAME};
use crate::config::toml_tables;

/// The key that lets Codex send calls to a server concurrently. Without the key, Codex sends them one after the
/// other.
const PARALLEL_CALLS: &str = "supports_parallel_tool_calls";
/// The key of `[features.code_mode]` that lists the namespaces of tools that only the model calls, and not code in
/// Codex's code mode.
const DIRECT_ONLY: &str = "direct_only_tool_namespaces";
const NAMESPACE: &str = "mcp__lockhouse";
/// The path, below the Lockhouse entry, of the key that sets whether Codex asks its user before each call of
/// `run_code`.
const APPROVAL_PATH: [&str; 3] = ["tools", "run_code", "approval_mode"];

pub(super) fn insert(source: &Source, start: &LaunchCommand) -> Result<Option<Insertion>, Diagnostics> {
    let fault = |label: String| {
        let fault = Diagnostic::new(source, None, "the file is not valid TOML", label);
        Diagnostics::from(fault.with_help("correct it, and run lockhouse init again"))
    };
    // Report the error without the line, which may hold a secret.
    let mut document: DocumentMut =
        source.text.parse().map_err(|error: toml_edit::TomlError| fault(error.message().into()))?;
    let mut servers = Table::new();
    servers.set_implicit(true);
    let servers = document.entry("mcp_servers").or_insert(Item::Table(servers));
    let Some(servers) = servers.as_table_mut() else {
        return Err(fault("mcp_servers is not a table with [mcp_servers.NAME] below it".into()));
    };
    let command = Value::from(start.program.to_string_lossy().into_owned());
    let arguments = Value::Array(start.arguments_for(AiClient::Codex).into_iter().collect());
    let existing = servers.get_mut(NAME).and_then(Item::as_table_like_mut);
    let header = format!("[mcp_servers.{NAME}]\n");
    let (is_current, before, mut after) = match existing {
        Some(existing) => {
            let same = |key: &str, value: &Value| {
                let text = |value: &Value| value.clone().decorated("", "").to_string();
                existing.get(key).and_then(Item::as_value).is_some_and(|now| text(now) == text(value))
            };
            // Whether Codex sends calls concurrently is the user's choice once it is set.
            let is_set = existing.contains_key(PARALLEL_CALLS);
            let is_current = same("command", &command) && same("args", &arguments) && is_set;
            let line = |table: &dyn TableLike| {
                let keys = ["command", "args", PARALLEL_CALLS].into_iter();
                keys.filter_map(|key| Some(format!("{key} = {}\n", table.get(key)?.to_string().trim())))
                    .collect::<String>()
            };
            let before = line(existing);
            if !is_current {
                existing.insert("command", Item::Value(command));
                existing.insert("args", Item::Value(arguments));
            }
            if !is_set {
                existing.insert(PARALLEL_CALLS, Item::Value(Value::from(true)));
            }
            (is_current, format!("{header}{before}"), format!("{header}{}", line(existing)))
        }
        None => {
            let mut table = Table::new();
            table.insert("command", Item::Value(command));
            table.insert("args", Item::Value(arguments));
            table.insert(PARALLEL_CALLS, Item::Value(Value::from(true)));
            let after = format!("{header}{table}");
            if !source.text.trim().is_empty() {
                table.decor_mut().set_prefix("\n");
            }
            servers.insert(NAME, Item::Table(table));
            (false, String::new(), after)
        }
    };
    if start.only_code && leave_to_model(&mut document) {
        after.push_str(&format!("\n[features.code_mode]\n{DIRECT_ONLY} = [\"{NAMESPACE}\"]\n"));
    } else if is_current {
        return Ok(None);
    }
    Ok(Some(Insertion { text: document.to_string(), before, after, section: "mcp_servers".into() }))
}

/// Keeps Lockhouse's tools out of Codex's own code mode by the key [`DIRECT_ONLY`], unless the user has set this key
/// already. Returns whether the key was added.
fn leave_to_model(document: &mut DocumentMut) -> bool {
    let mut missing = Table::new();
    missing.set_implicit(true);
    let features = document.entry("features").or_insert(Item::Table(missing));
    let Some(features) = features.as_table_like_mut() else { return false };
    let code_mode = features.entry("code_mode").or_insert(Item::Table(Table::new()));
    let Some(code_mode) = code_mode.as_table_like_mut() else { return false };
    if code_mode.contains_key(DIRECT_ONLY) {
        return false;
    }
    code_mode.insert(DIRECT_ONLY, Item::Value(Value::Array([NAMESPACE].into_iter().collect())));
    true
}

/// Removes the key [`DIRECT_ONLY`] from the text of Codex's configuration file, if it has the value that
/// [`insert`] writes and the file `before` did not have the key. Returns the new text.
///
/// # Errors
/// The file is not valid TOML.
pub(crate) fn remove_code_mode_setting(source: &Source, before: &Source) -> Result<String, Diagnostics> {
    let mut document = toml_tables::parse(source)?;
    let original = toml_tables::parse(before)?;
    let own = Value::Array([NAMESPACE].into_iter().collect()).to_string();
    let is_own = |value: &Value| value.clone().decorated("", "").to_string() == own;
    let path = ["features", "code_mode", DIRECT_ONLY];
    let found = toml_tables::find(&document, &path).and_then(Item::as_value).is_some_and(is_own);
    if found && toml_tables::find(&original, &path).is_none() {
        for length in (1..=path.len()).rev() {
            let is_empty = |item: &Item| item.as_table_like().is_none_or(|table| table.is_empty());
            let (outer, name) = (&path[..length - 1], path[length - 1]);
            let removable = toml_tables::find(&document, &path[..length]).is_some_and(is_empty)
                && toml_tables::find(&original, &path[..length]).is_none();
            if let (true, Some(table)) = (removable, toml_tables::find_mut(&mut document, outer)) {
                table.remove(name);
            }
        }
    }
    Ok(document.to_string())
}

/// Returns the new text of Codex's configuration file, with a key in the Lockhouse entry that lets Codex call
/// `run_code` without asking its user. `None` if the file has no Lockhouse entry, or if the entry already sets
/// whether Codex asks.
///
/// # Errors
/// The file is not valid TOML.
pub(crate) fn approve_run_code(source: &Source) -> Result<Option<String>, Diagnostics> {
    let mut document: DocumentMut = source.text.parse().map_err(|error: toml_edit::TomlError| {
        Diagnostics::from(Diagnostic::new(
            source,
            None,
            "the file is not valid TOML",
            error.message().to_owned(),
        ))
    })?;
    let entry = document.get_mut("mcp_servers").and_then(|servers| servers.get_mut(NAME));
    let Some(mut table) = entry.and_then(Item::as_table_like_mut) else { return Ok(None) };
    if table.contains_key("default_tools_approval_mode") {
        return Ok(None);
    }
    let [outer @ .., last] = APPROVAL_PATH;
    for name in outer {
        let mut missing = Table::new();
        missing.set_implicit(true);
        let Some(inner) = table.entry(name).or_insert(Item::Table(missing)).as_table_like_mut() else {
            return Ok(None);
        };
        table = inner;
    }
    if table.contains_key(last) {
        return Ok(None);
    }
    table.insert(last, Item::Value("approve".into()));
    Ok(Some(document.to_string()))
}
