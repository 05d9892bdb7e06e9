//! Inserts the server entry that starts Lockhouse into an AI client's own configuration file. Other settings, and
//! comments outside of the entry, stay unchanged.

mod answer_form;
mod codex;
mod continue_yaml;

use std::path::PathBuf;

use lockhouse_config::dialects::{Node, Table, get_path, parse_json, read};
use lockhouse_config::{Environment, ExposeMode, SkipReason};
use lockhouse_policies::{Diagnostic, Diagnostics, Source};
use lockhouse_upstream::ServerLimits;
use serde_json::{Map, Value as Json, json};

pub use answer_form::{UnsuitableEntry, unsuitable_entries};
pub use codex::{approve_run_code, restore_code_mode_setting};

use crate::AiClient;
use crate::entry_moves::EntryPlace;
use crate::json_edit::{Layout, PropertyValue, insert as insert_property, line_indent, pretty, property};
use answer_form::answer_form;

/// The server name of the entry that starts Lockhouse.
const NAME: &str = "lockhouse";

/// The new text of an AI client's configuration file, and what changed in it.
pub struct Insertion {
    pub text: String,
    /// The text of the Lockhouse entry before the change. Empty if there was no such entry.
    pub before: String,
    pub after: String,
    /// The path of the table that contains the Lockhouse entry, such as `mcpServers`.
    pub section: String,
}

/// The command with which AI clients start Lockhouse.
pub struct LaunchCommand {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Who uses the servers. The arguments say it too.
    pub mode: ExposeMode,
}

/// Inserts or updates the Lockhouse entry in an AI client's configuration file. Returns `None` if the file needs no
/// change. An existing entry in a file of Continue is never changed.
///
/// # Errors
/// The file is not valid in the format of its AI client.
pub fn insert(
    client: AiClient,
    source: &Source,
    start: &LaunchCommand,
) -> Result<Option<Insertion>, Diagnostics> {
    match client {
        AiClient::Codex => codex::insert(source, start),
        AiClient::Continue => continue_yaml::insert(source, start),
        _ => insert_into_json(client, source, start),
    }
}

/// The key of Claude Code that loads the definitions of all tools of a server into the model's context. Lockhouse's own
/// tools ask for it one by one.
const ALWAYS_LOAD: &str = "alwaysLoad";

/// Returns the Lockhouse entry for an AI client whose file is JSON and has the content `root`.
fn entry(client: AiClient, section: &[&str], root: &Table, start: &LaunchCommand) -> Map<String, Json> {
    let program = start.program.to_string_lossy();
    let form = answer_form(client, root);
    let form = form.into_iter().flat_map(|form| ["--answer", form.as_str()]).map(str::to_owned);
    let arguments: Vec<String> = start.arguments.iter().cloned().chain(form).collect();
    let value = match client {
        AiClient::Opencode => {
            let command: Vec<&str> =
                std::iter::once(&*program).chain(arguments.iter().map(String::as_str)).collect();
            match section {
                ["mcp"] => json!({"type": "local", "command": command, "enabled": true}),
                _ => json!({"type": "local", "command": command}),
            }
        }
        AiClient::Vscode => json!({"type": "stdio", "command": program, "args": arguments}),
        AiClient::ClaudeCode if start.mode == ExposeMode::Code => {
            json!({"type": "stdio", "command": program, "args": arguments, ALWAYS_LOAD: true})
        }
        // The tools of the servers would fill the model's context, which they need not: the model finds them by a search.
        AiClient::ClaudeCode => json!({"type": "stdio", "command": program, "args": arguments}),
        // Without this key, the model has to search for all tools, Lockhouse's own too.
        AiClient::Qwen => json!({"command": program, "args": arguments, "alwaysLoadTools": true}),
        AiClient::Copilot => {
            json!({"type": "local", "command": program, "args": arguments, "tools": ["*"]})
        }
        AiClient::Cline => {
            json!({"transport": {"type": "stdio", "command": program, "args": arguments}})
        }
        _ => json!({"command": program, "args": arguments}),
    };
    if let Json::Object(entry) = value { entry } else { Map::new() }
}

/// Returns the path of the table in which the AI client's configuration file lists MCP servers, outermost table first.
/// `root` is the content of the file; `None` if it cannot be parsed.
fn section(client: AiClient, root: Option<&Table>) -> &'static [&'static str] {
    match client {
        AiClient::Vscode => &["servers"],
        AiClient::Zed => &["context_servers"],
        AiClient::Opencode if root.is_some_and(|root| get_path(root, &["mcp", "servers"]).is_some()) => {
            &["mcp", "servers"]
        }
        AiClient::Opencode => &["mcp"],
        _ => &["mcpServers"],
    }
}

/// Returns the place of the Lockhouse entry in an AI client's configuration file, whether the file has the entry or
/// not.
pub fn own_place(client: AiClient, source: &Source) -> EntryPlace {
    let section: &[&str] = match client {
        AiClient::Codex => &["mcp_servers"],
        AiClient::Continue => &["mcpServers"],
        _ => {
            let root = parse_json(source).ok();
            section(client, root.as_ref().and_then(Node::table))
        }
    };
    EntryPlace { section: section.iter().map(|key| (*key).to_owned()).collect(), name: NAME.to_owned() }
}

/// Whether an AI client's configuration file has a server entry that starts Lockhouse, under a name other than
/// `lockhouse`. `false` if the file cannot be parsed.
pub fn lists_lockhouse(source: &Source, environment: &Environment) -> bool {
    let Ok(Some(listing)) = read(source, environment) else { return false };
    let others = listing.servers.into_iter().filter(|listed| listed.name != NAME);
    others.filter_map(|listed| listed.entry.ok()).any(|entry| {
        let resolved = entry.resolve(environment, ServerLimits::default(), String::new());
        resolved == Err(SkipReason::LockhouseItself)
    })
}

fn insert_into_json(
    client: AiClient,
    source: &Source,
    start: &LaunchCommand,
) -> Result<Option<Insertion>, Diagnostics> {
    let empty = Source { path: source.path.clone(), text: "{}\n".into() };
    let source = if source.text.trim().is_empty() { &empty } else { source };
    let root = parse_json(source)?;
    let Some(table) = root.table() else {
        let fault = Diagnostic::new(source, None, "the file is not a JSON object", "");
        return Err(fault.with_help("its client cannot have written it").into());
    };
    let section = section(client, Some(table));
    let mut value = entry(client, section, table, start);
    let layout = Layout::detect(&source.text);
    if let Some(node) = get_path(table, &[section, &[NAME]].concat()) {
        // Earlier choices of the mode may have written it.
        let obsolete =
            (client == AiClient::ClaudeCode && start.mode != ExposeMode::Code).then_some(ALWAYS_LOAD);
        return Ok(update(source, node, &mut value, obsolete, &layout)
            .map(|(text, before, after)| Insertion { text, before, after, section: section.join(".") }));
    }
    let value = Json::Object(value);
    let after = property(NAME, &value, &layout, 0);
    let value = PropertyValue { json: &value, text: None };
    let text = insert_property(&source.text, &root, section, NAME, value, &layout).map_err(|name| {
        let fault = Diagnostic::new(source, None, format!("{name} is not an object"), "");
        Diagnostics::from(fault.with_help("correct it, or take it out"))
    })?;
    Ok(Some(Insertion { text, before: String::new(), after, section: section.join(".") }))
}

/// Updates the existing Lockhouse entry `node` so that it has the keys and values in `value`, which start Lockhouse, and
/// the key `obsolete` is not true. Other keys stay. Returns the new text of the file, and the entry before and after;
/// `None` if the entry needs no change.
fn update(
    source: &Source,
    node: &Node,
    value: &mut Map<String, Json>,
    obsolete: Option<&str>,
    layout: &Layout,
) -> Option<(String, String, String)> {
    // Whether the entry is enabled is the user's choice once it exists.
    value.remove("enabled");
    let mut now = match node.to_json() {
        Json::Object(now) => now,
        _ => Map::new(),
    };
    let obsolete = obsolete.filter(|key| now.get(*key) == Some(&Json::Bool(true)));
    let is_unchanged =
        |(key, value): (&String, &Json)| now.get(key).map_or(key == "type", |now| now == value);
    if !now.is_empty() && obsolete.is_none() && value.iter().all(is_unchanged) {
        return None;
    }
    // Other keys may hold secrets: show only the keys that Lockhouse sets.
    let is_shown = |key: &str| value.contains_key(key) || obsolete == Some(key);
    let before = now.iter().filter(|(key, _)| is_shown(key));
    let before = Json::Object(before.map(|(key, value)| (key.clone(), value.clone())).collect());
    let before = property(NAME, &before, layout, 0);
    let after = property(NAME, &Json::Object(value.clone()), layout, 0);
    obsolete.into_iter().for_each(|key| drop(now.shift_remove(key)));
    now.extend(value.clone());
    let depth = line_indent(&source.text, node.at.start).len() / layout.unit.len().max(1);
    let changed = pretty(&Json::Object(now), layout, depth);
    let text = [&source.text[..node.at.start], &changed, &source.text[node.at.end..]].concat();
    Some((text, before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> LaunchCommand {
        LaunchCommand {
            program: "/usr/bin/lockhouse".into(),
            arguments: vec!["serve".into()],
            mode: ExposeMode::Code,
        }
    }

    fn inserted(client: AiClient, text: &str) -> Option<String> {
        let source = Source { path: "file".into(), text: text.into() };
        let inserted = insert(client, &source, &start()).map_err(|faults| faults.to_string());
        inserted.expect("a file that can be changed").map(|inserted| inserted.text)
    }

    #[test]
    fn an_entry_goes_in_once_and_nothing_else_changes() {
        for (client, text) in [
            (AiClient::Cursor, ""),
            (AiClient::Cursor, "{}"),
            (AiClient::Cursor, "{\"mcpServers\":{}}"),
            (AiClient::Cursor, "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\n"),
            (
                AiClient::ClaudeCode,
                "{\r\n\t\"numStartups\": 3,\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {}\r\n\t}\r\n}\r\n",
            ),
            (
                AiClient::Zed,
                "// mine\n{\n    \"theme\": \"x\", // trailing\n    \"context_servers\": {\n        // none yet\n    },\n}\n",
            ),
            (
                AiClient::Vscode,
                "{\n  \"servers\": {\n    \"a\": {\"type\": \"http\", \"url\": \"https://x\"}, /* c */\n  },\n  \"inputs\": [],\n}\n",
            ),
            (AiClient::Opencode, "{\"mcp\": {\"servers\": {}}}"),
            (AiClient::Opencode, "{\n  \"model\": \"x\"\n}\n"),
            (AiClient::Copilot, "{}"),
            (AiClient::Cline, ""),
            (AiClient::Qwen, ""),
            (AiClient::Gemini, ""),
            (AiClient::Continue, ""),
            (AiClient::Continue, "name: Mine # c\nmodels: []\n"),
            (AiClient::Continue, "mcpServers:\n- name: a # c\n  command: x\nrules: []\n"),
            (AiClient::Continue, "mcpServers:\n    - name: a\n      command: x\n"),
            (AiClient::Codex, ""),
            (AiClient::Codex, "model = \"x\" # c\n\n[mcp_servers.a]\ncommand = \"x\"\n\n[other]\nkey = 1\n"),
        ] {
            let once = inserted(client, text).expect("a change");
            // Every line of the original text is still there, in the same order.
            let mut lines = once.lines();
            for line in text.lines().filter(|line| line.len() > 2 && !line.starts_with("{\"")) {
                assert!(lines.any(|other| other == line), "{line:?} of {text:?} is not in {once}");
            }
            assert_eq!(inserted(client, &once), None, "{once}");
            insta::with_settings!({description => text}, { insta::assert_snapshot!(once) });
        }
    }

    fn inserted_in(mode: ExposeMode, client: AiClient, text: &str) -> Option<Insertion> {
        let source = Source { path: "file".into(), text: text.into() };
        let start = LaunchCommand { mode, ..start() };
        insert(client, &source, &start)
            .map_err(|faults| faults.to_string())
            .expect("a file that can be changed")
    }

    #[test]
    fn the_code_mode_of_codex_changes_with_the_mode_and_the_change_is_shown() {
        let text = "[features]\ncode_mode = true\n";
        let with = inserted_in(ExposeMode::Code, AiClient::Codex, text).expect("a change");
        let (bool, table) = (
            "\n[features]\ncode_mode = true\n",
            "\n[features]\ncode_mode = { enabled = true, direct_only_tool_namespaces = [\"mcp__lockhouse\"] }\n",
        );
        assert!(with.before.ends_with(bool) && with.after.ends_with(table), "{}{}", with.before, with.after);
        assert!(inserted_in(ExposeMode::Code, AiClient::Codex, &with.text).is_none(), "{}", with.text);
        let back = inserted_in(ExposeMode::Direct, AiClient::Codex, &with.text).expect("a change");
        assert!(back.before.ends_with(table) && back.after.ends_with(bool), "{}{}", back.before, back.after);
        assert!(back.text.starts_with(text), "{}", back.text);
        // Nothing is written for a code mode that is off.
        let off = inserted_in(ExposeMode::Code, AiClient::Codex, "").expect("a change");
        assert!(!off.text.contains("features"), "{}", off.text);
    }

    #[test]
    fn the_form_for_programs_is_written_only_where_the_file_switches_the_code_mode_of_qwen_on() {
        let value = |text: &str| inserted(AiClient::Qwen, text).map(|text| text.contains("\"--answer\""));
        let entry = "\"mcpServers\": {\"lockhouse\": {\"command\": \"/usr/bin/lockhouse\", \"args\": [\"serve\", \"--answer\", \"value\"], \"alwaysLoadTools\": true}}";
        for (text, expected) in [
            (String::new(), Some(false)),
            ("{\"tools\": {\"codeModeOnly\": false}}".into(), Some(false)),
            ("{\"tools\": {\"codeModeOnly\": true}}".into(), Some(true)),
            (format!("{{{entry}}}"), Some(false)),
            (format!("{{\"tools\": {{\"codeModeOnly\": true}}, {entry}}}"), None),
        ] {
            assert_eq!(value(&text), expected, "{text}");
        }
    }

    #[test]
    fn claude_code_loads_all_tools_only_if_programs_alone_use_the_servers() {
        let entry = |mode, text: &str| inserted_in(mode, AiClient::ClaudeCode, text);
        let code = entry(ExposeMode::Code, "").expect("a change").text;
        assert!(code.contains("\"alwaysLoad\": true"), "{code}");
        for mode in [ExposeMode::Direct, ExposeMode::Both] {
            let without = entry(mode, &code).expect("a change");
            assert!(without.before.contains("alwaysLoad") && !without.after.contains("alwaysLoad"));
            assert!(!without.text.contains("alwaysLoad"), "{}", without.text);
            assert!(entry(mode, &without.text).is_none(), "{}", without.text);
            assert_eq!(entry(ExposeMode::Code, &without.text).expect("a change").text, code);
        }
        let mine = code.replace("true", "false");
        assert!(entry(ExposeMode::Both, &mine).is_none(), "what the user has set stays");
    }

    #[test]
    fn codex_may_call_run_code_only_after_it_was_added_and_not_yet_decided() {
        let approved = |text: &str| {
            let source = Source { path: "config.toml".into(), text: text.into() };
            approve_run_code(&source).map_err(|faults| faults.to_string()).expect("valid TOML")
        };
        let text = "[mcp_servers.lockhouse]\ncommand = \"x\" # c\n";
        let changed = approved(text).expect("a change");
        assert_eq!(
            changed,
            format!("{text}\n[mcp_servers.lockhouse.tools.run_code]\napproval_mode = \"approve\"\n")
        );
        let inline = approved("[mcp_servers]\nlockhouse = { command = \"x\" }\n").expect("a change");
        assert_eq!(
            inline,
            "[mcp_servers]\nlockhouse = { command = \"x\" , tools.run_code.approval_mode = \"approve\" }\n"
        );
        for decided in [
            changed.as_str(),
            "",
            "[mcp_servers.a]\n",
            "[mcp_servers.lockhouse]\ndefault_tools_approval_mode = \"prompt\"\n",
        ] {
            assert_eq!(approved(decided), None, "{decided}");
        }
    }

    #[test]
    fn an_entry_that_starts_something_else_is_changed_and_keeps_what_its_user_added() {
        let text = "{\n  \"mcpServers\": {\n    \"lockhouse\": { \"command\": \"/old\", \"args\": [\"serve\"], \"env\": {\"A\": \"b\"} }, // c\n    \"a\": {}\n  }\n}\n";
        let changed = inserted(AiClient::Cursor, text).expect("a change");
        assert!(
            changed.contains("\"A\": \"b\"")
                && changed.contains("/usr/bin/lockhouse")
                && changed.contains("// c\n    \"a\": {}"),
            "{changed}"
        );
        let text =
            "[mcp_servers.lockhouse]\ncommand = \"/old\"\nargs = [\"serve\"]\ntool_timeout_sec = 9 # c\n";
        let changed = inserted(AiClient::Codex, text).expect("a change");
        assert!(changed.contains("tool_timeout_sec = 9 # c") && !changed.contains("/old"), "{changed}");
        let text = "[mcp_servers]\nlockhouse = { command = \"/old\", env = { A = \"b\" } }\n";
        let changed = inserted(AiClient::Codex, text).expect("a change");
        assert!(changed.contains("env = { A = \"b\" }") && !changed.contains("/old"), "{changed}");
    }
}
