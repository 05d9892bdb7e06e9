//! Inserts the server entry that starts Lockhouse into the configuration file of Codex, which is TOML.

mod code_mode;

use lockhouse_config::toml_tables;
use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use toml_edit::{Item, Table, TableLike, Value};

use super::{Insertion, LaunchCommand, NAME};

/// The key that lets Codex send calls to a server concurrently. Without the key, Codex sends them one after the
/// other.
const PARALLEL_CALLS: &str = "supports_parallel_tool_calls";
/// The path, below the Lockhouse entry, of the key that sets whether Codex asks its user before each call of
/// `run_code`.
const APPROVAL_PATH: [&str; 3] = ["tools", "run_code", "approval_mode"];

pub(super) fn insert(source: &Source, start: &LaunchCommand) -> Result<Option<Insertion>, Diagnostics> {
    let mut document = toml_tables::parse(source)?;
    let mut servers = Table::new();
    servers.set_implicit(true);
    let servers = document.entry("mcp_servers").or_insert(Item::Table(servers));
    let Some(servers) = servers.as_table_mut() else {
        let label = "mcp_servers is not a table with [mcp_servers.NAME] below it";
        let fault = Diagnostic::new(source, None, "the file is not valid TOML", label);
        return Err(fault.with_help("correct it, and run the command again").into());
    };
    let (is_current, mut before, mut after) = update_entry(servers, start, source.text.trim().is_empty());
    match code_mode::update(&mut document, start.mode) {
        Some((former, new)) => {
            before.push_str(&former);
            after.push_str(&new);
        }
        None if is_current => return Ok(None),
        None => {}
    }
    Ok(Some(Insertion { text: document.to_string(), before, after, section: "mcp_servers".into() }))
}

/// Inserts or updates the Lockhouse entry in the table of servers. Returns whether the entry needed no change, and its
/// lines before and after. `is_first` says that the file is empty.
fn update_entry(servers: &mut Table, start: &LaunchCommand, is_first: bool) -> (bool, String, String) {
    let command = Value::from(start.program.to_string_lossy().into_owned());
    // Codex marks the calls of its programs, so that no form of answers needs to be set.
    let arguments = Value::Array(start.arguments.iter().cloned().collect());
    let header = format!("[mcp_servers.{NAME}]\n");
    let Some(existing) = servers.get_mut(NAME).and_then(Item::as_table_like_mut) else {
        let mut table = Table::new();
        table.insert("command", Item::Value(command));
        table.insert("args", Item::Value(arguments));
        table.insert(PARALLEL_CALLS, Item::Value(Value::from(true)));
        let after = format!("{header}{table}");
        if !is_first {
            table.decor_mut().set_prefix("\n");
        }
        servers.insert(NAME, Item::Table(table));
        return (false, String::new(), after);
    };
    let same = |key: &str, value: &Value| {
        let text = |value: &Value| value.clone().decorated("", "").to_string();
        existing.get(key).and_then(Item::as_value).is_some_and(|now| text(now) == text(value))
    };
    // Whether Codex sends calls concurrently is the user's choice once it is set.
    let is_set = existing.contains_key(PARALLEL_CALLS);
    let is_current = same("command", &command) && same("args", &arguments) && is_set;
    let lines = |table: &dyn TableLike| {
        let keys = ["command", "args", PARALLEL_CALLS].into_iter();
        keys.filter_map(|key| Some(format!("{key} = {}\n", table.get(key)?.to_string().trim())))
            .collect::<String>()
    };
    let before = lines(existing);
    if !is_current {
        existing.insert("command", Item::Value(command));
        existing.insert("args", Item::Value(arguments));
    }
    if !is_set {
        existing.insert(PARALLEL_CALLS, Item::Value(Value::from(true)));
    }
    (is_current, format!("{header}{before}"), format!("{header}{}", lines(existing)))
}

/// Keeps Lockhouse's tools out of Codex's own code mode if the file `before` did so, and otherwise lets the code mode
/// call them. Returns the new text of Codex's configuration file.
///
/// # Errors
/// One of the files is not valid TOML.
pub fn restore_code_mode_setting(source: &Source, before: &Source) -> Result<String, Diagnostics> {
    let mut document = toml_tables::parse(source)?;
    match code_mode::is_restricted(&toml_tables::parse(before)?) {
        true => code_mode::restrict(&mut document),
        false => code_mode::release(&mut document),
    }
    Ok(document.to_string())
}

/// Returns the new text of Codex's configuration file, with a key in the Lockhouse entry that lets Codex call
/// `run_code` without asking its user. `None` if the file has no Lockhouse entry, or if the entry already sets
/// whether Codex asks.
///
/// # Errors
/// The file is not valid TOML.
pub fn approve_run_code(source: &Source) -> Result<Option<String>, Diagnostics> {
    let mut document = toml_tables::parse(source)?;
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
