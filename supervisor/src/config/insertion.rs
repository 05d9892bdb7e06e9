//! Puts the entry that points at Lockhouse into an AI client's own file. Everything else stays byte for byte.

mod codex;

use std::path::PathBuf;

use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::Client;
use super::dialects::{Node, Table, parse_json, table_at};

/// What our entry is called.
pub(crate) const NAME: &str = "lockhouse";

/// A file with the entry, and what of it is new.
pub(crate) struct Insertion {
    pub(crate) text: String,
    /// The entry as it was, if there was one, and as it is.
    pub(crate) before: String,
    pub(crate) after: String,
    /// Where the entry is, in words: `mcpServers`.
    pub(crate) section: String,
}

/// The command that starts us.
pub(crate) struct StartEntry {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
}

/// Puts it in. `None` when it is there already.
///
/// # Errors
/// The file is not what its client would write.
pub(crate) fn insert(
    client: Client,
    source: &Source,
    start: &StartEntry,
) -> Result<Option<Insertion>, Diagnostics> {
    if client == Client::Codex { codex::insert(source, start) } else { into_json(client, source, start) }
}

fn entry(client: Client, section: &[&str], start: &StartEntry) -> Map<String, Json> {
    let program = start.program.to_string_lossy();
    let value = match client {
        Client::Opencode => {
            let command: Vec<&str> =
                std::iter::once(&*program).chain(start.arguments.iter().map(String::as_str)).collect();
            match section {
                ["mcp"] => json!({"type": "local", "command": command, "enabled": true}),
                _ => json!({"type": "local", "command": command}),
            }
        }
        Client::ClaudeCode | Client::Vscode => {
            json!({"type": "stdio", "command": program, "args": start.arguments})
        }
        _ => json!({"command": program, "args": start.arguments}),
    };
    if let Json::Object(entry) = value { entry } else { Map::new() }
}

/// The tables, from the outermost on, in which the client looks for servers.
fn section(client: Client, root: Option<&Table>) -> &'static [&'static str] {
    match client {
        Client::Vscode => &["servers"],
        Client::Zed => &["context_servers"],
        Client::Opencode if root.is_some_and(|root| table_at(root, &["mcp", "servers"]).is_some()) => {
            &["mcp", "servers"]
        }
        Client::Opencode => &["mcp"],
        _ => &["mcpServers"],
    }
}

fn into_json(client: Client, source: &Source, start: &StartEntry) -> Result<Option<Insertion>, Diagnostics> {
    if source.text.trim().is_empty() {
        let section = section(client, None);
        let mut value = Json::Object(entry(client, section, start));
        let after = property(NAME, &value, &Layout::default(), 0);
        value = json!({NAME: value});
        for name in section.iter().rev() {
            value = json!({*name: value});
        }
        let text = format!("{}\n", pretty(&value, &Layout::default(), 0));
        return Ok(Some(Insertion { text, before: String::new(), after, section: section.join(".") }));
    }
    let root = parse_json(source)?;
    let Some(table) = root.table() else {
        let fault = Diagnostic::new(source, None, "the file is not a JSON object", "");
        return Err(fault.with_help("its client cannot have written it").into());
    };
    let section = section(client, Some(table));
    let mut value = entry(client, section, start);
    let layout = Layout::of(&source.text);
    // The innermost table of the section that is there, and the names that are not.
    let (mut inside, mut missing) = (&root, section);
    while let [name, rest @ ..] = missing {
        match inside.table().and_then(|table| table_at(table, &[name])) {
            Some(node) if node.table().is_some() => (inside, missing) = (node, rest),
            Some(_) => {
                let fault = Diagnostic::new(source, None, format!("{name} is not an object"), "");
                return Err(fault.with_help("correct it, or take it out").into());
            }
            None => break,
        }
    }
    let existing = inside.table().and_then(|table| table_at(table, &[NAME])).filter(|_| missing.is_empty());
    if let Some(node) = existing {
        return Ok(update(source, node, &mut value, &layout, section));
    }
    let mut whole = Json::Object(value);
    let after = property(NAME, &whole, &layout, 0);
    let mut name = NAME;
    for outer in missing.iter().rev() {
        whole = json!({name: whole});
        name = outer;
    }
    let text = first_in(source, inside, name, &whole, &layout);
    Ok(Some(Insertion { text, before: String::new(), after, section: section.join(".") }))
}

/// An entry of ours that starts something else is changed; what else its user wrote there stays.
fn update(
    source: &Source,
    node: &Node,
    value: &mut Map<String, Json>,
    layout: &Layout,
    section: &[&str],
) -> Option<Insertion> {
    // Whether it is switched on is its user's choice by now.
    value.remove("enabled");
    let mut now = node.table().map_or_else(Map::new, |_| match node.to_json() {
        Json::Object(now) => now,
        _ => Map::new(),
    });
    let is_said = |(key, value): (&String, &Json)| now.get(key).map_or(key == "type", |now| now == value);
    if !now.is_empty() && value.iter().all(is_said) {
        return None;
    }
    // What else is there may be a secret: only our keys are shown.
    let before = now.iter().filter(|(key, _)| value.contains_key(*key));
    let before = Json::Object(before.map(|(key, value)| (key.clone(), value.clone())).collect());
    let before = property(NAME, &before, layout, 0);
    let after = property(NAME, &Json::Object(value.clone()), layout, 0);
    now.extend(value.clone());
    let depth = line_indent(&source.text, node.at.start).len() / layout.unit.len().max(1);
    let changed = pretty(&Json::Object(now), layout, depth);
    let text = [&source.text[..node.at.start], &changed, &source.text[node.at.end..]].concat();
    Some(Insertion { text, before, after, section: section.join(".") })
}

/// The text with a property put first into an object, where it changes no line of the others.
fn first_in(source: &Source, object: &Node, name: &str, value: &Json, layout: &Layout) -> String {
    let (before, after) = source.text.split_at(object.at.start + 1);
    let inner = &source.text[object.at.start + 1..object.at.end - 1];
    let outer = line_indent(&source.text, object.at.start);
    let first = object.table().and_then(|table| table.first());
    let put = match first {
        // All on one line.
        Some((key, _)) if !source.text[object.at.start..key.at.start].contains('\n') => {
            format!("{}: {}, ", Json::from(name), value)
        }
        Some((key, _)) => {
            let indent = line_indent(&source.text, key.at.start);
            let depth = indent.len() / layout.unit.len().max(1);
            format!("{}{indent}{},", layout.newline, property(name, value, layout, depth))
        }
        None => {
            let depth = outer.len() / layout.unit.len().max(1) + 1;
            let end = if inner.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']) {
                ""
            } else {
                &*format!("{}{outer}", layout.newline)
            };
            format!(
                "{}{}{}{end}",
                layout.newline,
                layout.unit.repeat(depth),
                property(name, value, layout, depth)
            )
        }
    };
    [before, &put, after].concat()
}

/// How a file is laid out.
struct Layout {
    unit: String,
    newline: &'static str,
}

impl Default for Layout {
    fn default() -> Self {
        Self { unit: "  ".into(), newline: "\n" }
    }
}

impl Layout {
    fn of(text: &str) -> Self {
        let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
        let unit = text.lines().map(indent).find(|indent| !indent.is_empty() && indent.len() <= 8);
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        Self { unit: unit.unwrap_or_else(|| "  ".into()), newline }
    }
}

fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = &text[start..at];
    &line[..line.len() - line.trim_start().len()]
}

fn property(name: &str, value: &Json, layout: &Layout, depth: usize) -> String {
    format!("{}: {}", Json::from(name), pretty(value, layout, depth))
}

/// As the file is indented, at a depth.
fn pretty(value: &Json, layout: &Layout, depth: usize) -> String {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(layout.unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    // Into memory, of values that are JSON: nothing that could fail.
    if value.serialize(&mut serializer).is_err() {
        return value.to_string();
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    text.replace('\n', &format!("{}{}", layout.newline, layout.unit.repeat(depth)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> StartEntry {
        StartEntry { program: "/usr/bin/lockhouse".into(), arguments: vec!["serve".into()] }
    }

    fn inserted(client: Client, text: &str) -> Option<String> {
        let source = Source { path: "file".into(), text: text.into() };
        let inserted = insert(client, &source, &start()).map_err(|faults| faults.to_string());
        inserted.expect("a file that can be changed").map(|inserted| inserted.text)
    }

    #[test]
    fn an_entry_goes_in_once_and_nothing_else_changes() {
        for (client, text) in [
            (Client::Cursor, ""),
            (Client::Cursor, "{}"),
            (Client::Cursor, "{\"mcpServers\":{}}"),
            (Client::Cursor, "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\n"),
            (
                Client::ClaudeCode,
                "{\r\n\t\"numStartups\": 3,\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}\r\n\t}\r\n}\r\n",
            ),
            (
                Client::Zed,
                "// mine\n{\n    \"theme\": \"x\", // trailing\n    \"context_servers\": {\n        // none yet\n    },\n}\n",
            ),
            (
                Client::Vscode,
                "{\n  \"servers\": {\n    \"a\": {\"type\": \"http\", \"url\": \"https://x\"}, /* c */\n  },\n  \"inputs\": [],\n}\n",
            ),
            (Client::Opencode, "{\"mcp\": {\"servers\": {}}}"),
            (Client::Opencode, "{\n  \"model\": \"x\"\n}\n"),
            (Client::Codex, ""),
            (Client::Codex, "model = \"x\" # c\n\n[mcp_servers.a]\ncommand = \"x\"\n\n[other]\nkey = 1\n"),
        ] {
            let once = inserted(client, text).expect("a change");
            // Every line that was there is there in its order.
            let mut lines = once.lines();
            for line in text.lines().filter(|line| line.len() > 2 && !line.starts_with("{\"")) {
                assert!(lines.any(|other| other == line), "{line:?} of {text:?} is not in {once}");
            }
            assert_eq!(inserted(client, &once), None, "{once}");
            insta::with_settings!({description => text}, { insta::assert_snapshot!(once) });
        }
    }

    #[test]
    fn an_entry_that_starts_something_else_is_changed_and_keeps_what_its_user_added() {
        let text = "{\n  \"mcpServers\": {\n    \"lockhouse\": { \"command\": \"/old\", \"args\": [\"serve\"], \"env\": {\"A\": \"b\"} }, // c\n    \"a\": {}\n  }\n}\n";
        let changed = inserted(Client::Cursor, text).expect("a change");
        assert!(
            changed.contains("\"A\": \"b\"")
                && changed.contains("/usr/bin/lockhouse")
                && changed.contains("// c\n    \"a\": {}"),
            "{changed}"
        );
        let text =
            "[mcp_servers.lockhouse]\ncommand = \"/old\"\nargs = [\"serve\"]\ntool_timeout_sec = 9 # c\n";
        let changed = inserted(Client::Codex, text).expect("a change");
        assert!(changed.contains("tool_timeout_sec = 9 # c") && !changed.contains("/old"), "{changed}");
        let text = "[mcp_servers]\nlockhouse = { command = \"/old\", env = { A = \"b\" } }\n";
        let changed = inserted(Client::Codex, text).expect("a change");
        assert!(changed.contains("env = { A = \"b\" }") && !changed.contains("/old"), "{changed}");
    }
}
