//! The tables of servers: `[servers.NAME]` and `[clients.NAME.servers.NAME]`.

use std::collections::BTreeMap;

use lockhouse_protocol::{ServerName, ToolName};
use toml::de::DeTable;

use super::limits::{self, LIMIT_KEYS};
use super::lists::{list, refuse_dead_entries};
use super::reader::{Key, Reader, Value, kind_of};
use super::rules;
use crate::layer::Servers;
use crate::pattern::Subject;
use crate::printable::printable;
use crate::rule::{Rule, Rules};
use crate::table::{OnChange, Pin, ServerTable};

const SERVER_KEYS: &str = "a server's table has the keys `allow`, `ask`, `deny`, `resources`, `prompts`, `rules`, \
     `pins`, `on_change`, `limits`, `rate`, `calls_per_execution`, `argument_bytes_per_execution`, \
     `result_bytes_per_execution` and `timeout_seconds`";

/// `within` is empty, or the client's table and a dot.
pub(super) fn servers(
    reader: &mut Reader<'_, '_>,
    within: &str,
    key: &Key<'_>,
    value: &Value<'_>,
) -> Servers {
    let mut servers = Servers::new();
    let help = format!("write one table for each server: [{within}servers.NAME]");
    let Some(tables) = reader.table("servers", key, value, help) else { return servers };
    for (name, value) in tables {
        let table = server(reader, within, name, value);
        match ServerName::new(name.get_ref().as_ref()) {
            Ok(server) => _ = servers.insert(server, table),
            Err(invalid) => {
                let help = "use the server's name as in the configuration, of A-Z a-z 0-9 _ -";
                reader.refuse(name.span(), invalid.to_string(), "not a server's name", help);
            }
        }
    }
    servers
}

fn server(reader: &mut Reader<'_, '_>, within: &str, name: &Key<'_>, value: &Value<'_>) -> ServerTable {
    let full = format!("{within}servers.{}", name.get_ref());
    let mut table = ServerTable::new(full.clone(), reader.line(&name.span()));
    let help = format!("write [{full}] and below it allow = [\"...\"]");
    let Some(written) = reader.table(&full, name, value, help) else { return table };
    let mut rules = Vec::new();
    for (key, value) in written {
        match key.get_ref().as_ref() {
            "allow" => table.allow = Some(list(reader, Subject::Tools, key, value)),
            "ask" => table.ask = Some(list(reader, Subject::Tools, key, value)),
            "resources" => table.resources = Some(list(reader, Subject::Resources, key, value)),
            "prompts" => table.prompts = Some(list(reader, Subject::Prompts, key, value)),
            "deny" => table.deny = Some(list(reader, Subject::Anything, key, value)),
            "rules" => rules = rules::rules(reader, &full, value),
            "pins" => table.pins = pins(reader, key, value),
            "on_change" => {
                table.on_change = on_change(reader, value).map(|choice| (choice, reader.line(&key.span())))
            }
            "limits" => table.tool_limits = limits::of_tools(reader, &full, key, value),
            other if LIMIT_KEYS.contains(&other) => {}
            _ => reader.unknown_key(key, "a server's table", SERVER_KEYS),
        }
    }
    table.limits = limits::limits(reader, written);
    refuse_dead(reader, &table, &rules);
    table.rules = Rules::new(rules);
    table
}

fn refuse_dead(reader: &mut Reader<'_, '_>, table: &ServerTable, rules: &[Rule]) {
    let Some(deny) = &table.deny else { return };
    for (name, list) in table.lists().filter(|(name, _)| *name != "deny") {
        refuse_dead_entries(reader, name, list, deny);
    }
    rules::refuse_dead_rules(reader, rules, deny);
}

fn on_change(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<OnChange> {
    let written = value.get_ref().as_str();
    let known = written.and_then(OnChange::named);
    if known.is_none() {
        let title = match written {
            Some(other) => format!("`on_change` cannot be \"{}\"", printable(other)),
            None => format!("`on_change` must be a string, not {}", kind_of(value)),
        };
        let help =
            "use \"warn\" (call it all the same), \"ask\" (not before a person accepts it) or \"block\"";
        reader.refuse(value.span(), title, "expected \"warn\", \"ask\" or \"block\"", help);
    }
    known
}

fn pins(reader: &mut Reader<'_, '_>, key: &Key<'_>, value: &Value<'_>) -> BTreeMap<ToolName, Pin> {
    let help = "write a tool and the hash of its definition: NAME = \"sha256:...\"";
    let empty = DeTable::new();
    let table = reader.table("pins", key, value, help).unwrap_or(&empty);
    let mut pins = BTreeMap::new();
    for (name, value) in table {
        if !reader.has_room(name.span()) {
            break;
        }
        let tool = ToolName::new(name.get_ref().as_ref());
        if let Err(invalid) = &tool {
            let help = "pin one tool, by its whole name; a name with a `.` or a `/` stands in quotes";
            reader.refuse(name.span(), invalid.to_string(), "not a tool's name", help);
        }
        let line = reader.line(&name.span());
        match (tool, digest(value)) {
            (Ok(tool), Some(digest)) => _ = pins.insert(tool, Pin { digest, line }),
            (Err(_), Some(_)) => {}
            (_, None) => {
                let title = "a pin must be \"sha256:\" and 64 hexadecimal digits";
                reader.refuse(value.span(), title, "not the hash of a definition", help);
            }
        }
    }
    pins
}

fn digest(value: &Value<'_>) -> Option<String> {
    let digits = value.get_ref().as_str()?.strip_prefix("sha256:")?;
    let valid = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then(|| digits.to_ascii_lowercase())
}
