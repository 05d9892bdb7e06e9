//! Inserts the server entry that starts Lockhouse into the configuration file of Codex, which is TOML.

use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::{AiClient, Insertion, LaunchCommand, NAME};

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
    let (before, after) = match existing {
        Some(existing) => {
            let same = |key: &str, value: &Value| {
                let text = |value: &Value| value.clone().decorated("", "").to_string();
                existing.get(key).and_then(Item::as_value).is_some_and(|now| text(now) == text(value))
            };
            if same("command", &command) && same("args", &arguments) {
                return Ok(None);
            }
            let line = |table: &dyn TableLike| {
                let keys = ["command", "args"].into_iter();
                keys.filter_map(|key| Some(format!("{key} = {}\n", table.get(key)?.to_string().trim())))
                    .collect::<String>()
            };
            let before = line(existing);
            existing.insert("command", Item::Value(command));
            existing.insert("args", Item::Value(arguments));
            (format!("{header}{before}"), format!("{header}{}", line(existing)))
        }
        None => {
            let mut table = Table::new();
            table.insert("command", Item::Value(command));
            table.insert("args", Item::Value(arguments));
            let after = format!("{header}{table}");
            if !source.text.trim().is_empty() {
                table.decor_mut().set_prefix("\n");
            }
            servers.insert(NAME, Item::Table(table));
            (String::new(), after)
        }
    };
    Ok(Some(Insertion { text: document.to_string(), before, after, section: "mcp_servers".into() }))
}
