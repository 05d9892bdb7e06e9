//! Parses the policy tables of servers: `[servers.NAME]` and `[clients.NAME.servers.NAME]`.

use std::collections::BTreeMap;

use lockhouse_protocol::{ServerName, ToolName};
use toml::de::DeTable;

use super::limit_keys::{self, LIMIT_KEYS};
use super::lists::{list, report_dead_entries};
use super::reader::{DocumentReader, Key, Value, kind_of};
use super::rules;
use crate::layer::Servers;
use crate::pattern::PatternKind;
use crate::printable::printable;
use crate::rule::{Rule, Rules};
use crate::table::{OnChange, Pin, ServerTable};

const SERVER_KEYS: &str = "a server's table has the keys `allow`, `ask`, `deny`, `resources`, `prompts`, `rules`, \
     `pins`, `on_change`, `limits`, `rate`, `calls_per_execution`, `argument_bytes_per_execution`, \
     `result_bytes_per_execution` and `timeout_seconds`";

/// Keys of a server's table in the configuration, which people also look for in the policy.
const CONFIGURATION_KEYS: [&str; 14] = [
    "args",
    "call_timeout_max_seconds",
    "call_timeout_seconds",
    "command",
    "cwd",
    "env",
    "headers",
    "parallel_calls",
    "queue_timeout_seconds",
    "sandbox",
    "start",
    "start_timeout_seconds",
    "tools",
    "url",
];

/// Parses all server tables below the key `servers`. `within` is the prefix of their full names in messages:
/// empty for `[servers.NAME]`, `clients.NAME.` for the server tables of an AI client.
pub(super) fn servers(
    reader: &mut DocumentReader<'_, '_>,
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
                let help = "use the server's name from the configuration; it has only A-Z a-z 0-9 _ -";
                reader.report_error(name.span(), invalid.to_string(), "not a server's name", help);
            }
        }
    }
    servers
}

fn server(
    reader: &mut DocumentReader<'_, '_>,
    within: &str,
    name: &Key<'_>,
    value: &Value<'_>,
) -> ServerTable {
    let full = format!("{within}servers.{}", name.get_ref());
    let mut table = ServerTable::new(full.clone(), reader.line(&name.span()));
    let help = format!("write [{full}] and below it allow = [\"...\"]");
    let Some(written) = reader.table(&full, name, value, help) else { return table };
    let mut rules = Vec::new();
    for (key, value) in written {
        match key.get_ref().as_ref() {
            "allow" => table.allow = Some(list(reader, PatternKind::Tools, key, value)),
            "ask" => table.ask = Some(list(reader, PatternKind::Tools, key, value)),
            "resources" => table.resources = Some(list(reader, PatternKind::Resources, key, value)),
            "prompts" => table.prompts = Some(list(reader, PatternKind::Prompts, key, value)),
            "deny" => table.deny = Some(list(reader, PatternKind::Anything, key, value)),
            "rules" => rules = rules::rules(reader, &full, value),
            "pins" => table.pins = pins(reader, key, value),
            "on_change" => {
                table.on_change = on_change(reader, value).map(|choice| (choice, reader.line(&key.span())))
            }
            "limits" => table.tool_limits = limit_keys::tool_limits(reader, &full, key, value),
            other if LIMIT_KEYS.contains(&other) => {}
            other if CONFIGURATION_KEYS.contains(&other) => {
                let help =
                    format!("put it into [servers.{}] of the configuration, `config.toml`", name.get_ref());
                reader.unknown_key(key, "a policy", &help);
            }
            _ => reader.unknown_key(key, "a server's table", SERVER_KEYS),
        }
    }
    table.limits = limit_keys::limits(reader, written);
    report_dead(reader, &table, &rules);
    table.rules = Rules::new(rules);
    table
}

fn report_dead(reader: &mut DocumentReader<'_, '_>, table: &ServerTable, rules: &[Rule]) {
    let Some(deny) = &table.deny else { return };
    for (name, list) in table.lists().filter(|(name, _)| *name != "deny") {
        report_dead_entries(reader, name, list, deny);
    }
    rules::report_dead_rules(reader, rules, deny);
}

fn on_change(reader: &mut DocumentReader<'_, '_>, value: &Value<'_>) -> Option<OnChange> {
    let written = value.get_ref().as_str();
    let known = written.and_then(OnChange::parse);
    if known.is_none() {
        let title = match written {
            Some(other) => format!("`on_change` cannot be \"{}\"", printable(other)),
            None => format!("`on_change` must be a string, not {}", kind_of(value)),
        };
        let help = "use \"warn\" (calls continue), \"ask\" (calls wait until a user accepts the change) or \"block\"";
        reader.report_error(value.span(), title, "expected \"warn\", \"ask\" or \"block\"", help);
    }
    known
}

fn pins(reader: &mut DocumentReader<'_, '_>, key: &Key<'_>, value: &Value<'_>) -> BTreeMap<ToolName, Pin> {
    let help = "write a tool and the hash of its definition: NAME = \"sha256:...\"";
    let empty = DeTable::new();
    let table = reader.table("pins", key, value, help).unwrap_or(&empty);
    let mut pins = BTreeMap::new();
    for (name, value) in table {
        if !reader.count_pattern(name.span()) {
            break;
        }
        let tool = ToolName::new(name.get_ref().as_ref());
        if let Err(invalid) = &tool {
            let help = "pin one tool by its full name; quote a name with a `.` or a `/`";
            reader.report_error(name.span(), invalid.to_string(), "not a tool's name", help);
        }
        let line = reader.line(&name.span());
        match (tool, digest(value)) {
            (Ok(tool), Some(digest)) => _ = pins.insert(tool, Pin { digest, line }),
            (Err(_), Some(_)) => {}
            (_, None) => {
                let title = "a pin must be \"sha256:\" and 64 hexadecimal digits";
                reader.report_error(value.span(), title, "not the hash of a tool definition", help);
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
