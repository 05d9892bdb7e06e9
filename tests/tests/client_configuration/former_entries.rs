//! Tests of entries that an earlier version of Lockhouse wrote into the files of AI clients: they go on to work, and
//! `lockhouse init` rewrites those that need it.

use std::path::Path;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal};
use serde_json::{Value, json};

const CLAUDE_CODE: &str = "home/.claude.json";
const CODEX: &str = "home/.codex/config.toml";
const GEMINI: &str = "home/.gemini/settings.json";
const OPENCODE: &str = "config/opencode/opencode.json";
const QWEN: &str = "home/.qwen/settings.json";

/// A file of an AI client with an entry that the earlier version wrote.
struct Former {
    /// The name of the file in `former_entries/`.
    name: &'static str,
    /// The AI client, its file, and the modes with which `lockhouse init` runs again.
    client: &'static str,
    file: &'static str,
    mode: &'static str,
    /// What the present `lockhouse init` replaces in the file. Empty if it changes nothing.
    changes: &'static [(&'static str, &'static str)],
    /// Whether `lockhouse status` and `lockhouse doctor` name the entry, and with which command.
    named: Option<&'static str>,
}

const JSON_FORM: (&str, &str) = ("\"serve\",\n        \"--answer\",\n        \"value\"\n", "\"serve\"\n");
const FORMER: [Former; 10] = [
    Former {
        name: "codex_code.toml",
        client: "codex",
        file: CODEX,
        mode: "code",
        changes: &[("[\"serve\", \"--answer\", \"value\"]", "[\"serve\"]")],
        named: Some("lockhouse init --client codex"),
    },
    Former {
        name: "codex_code.toml",
        client: "codex",
        file: CODEX,
        mode: "direct",
        changes: &[
            ("[\"serve\", \"--answer\", \"value\"]", "[\"serve\", \"--expose\", \"direct\"]"),
            ("\n[features.code_mode]\ndirect_only_tool_namespaces = [\"mcp__lockhouse\"]\n", ""),
        ],
        named: Some("lockhouse init --client codex"),
    },
    Former {
        name: "codex_direct.toml",
        client: "codex",
        file: CODEX,
        mode: "direct",
        changes: &[(", \"--answer\", \"value\"]", "]")],
        named: Some("lockhouse init --client codex --mode direct"),
    },
    Former {
        name: "codex_code_mode_on.toml",
        client: "codex",
        file: CODEX,
        mode: "code",
        changes: &[
            ("[\"serve\", \"--answer\", \"value\"]", "[\"serve\"]"),
            (
                "code_mode = true # mine",
                "code_mode = { enabled = true, direct_only_tool_namespaces = [\"mcp__lockhouse\"] } # mine",
            ),
        ],
        named: Some("lockhouse init --client codex"),
    },
    Former {
        name: "opencode.json",
        client: "opencode",
        file: OPENCODE,
        mode: "code",
        changes: &[JSON_FORM],
        named: Some("lockhouse init --client opencode"),
    },
    Former {
        name: "qwen.json",
        client: "qwen",
        file: QWEN,
        mode: "code",
        changes: &[JSON_FORM],
        named: Some("lockhouse init --client qwen"),
    },
    Former {
        name: "qwen_code_mode_on.json",
        client: "qwen",
        file: QWEN,
        mode: "code",
        changes: &[],
        named: None,
    },
    Former {
        name: "claude_code.json",
        client: "claude-code",
        file: CLAUDE_CODE,
        mode: "code",
        changes: &[],
        named: None,
    },
    Former {
        name: "claude_code_both.json",
        client: "claude-code",
        file: CLAUDE_CODE,
        mode: "both",
        changes: &[("      ],\n      \"alwaysLoad\": true\n", "      ]\n")],
        named: None,
    },
    Former { name: "gemini.json", client: "gemini", file: GEMINI, mode: "code", changes: &[], named: None },
];

/// Returns the text of a former file. It starts the program under test.
fn former_text(lockhouse: &Lockhouse, name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/client_configuration/former_entries").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.replace("[LOCKHOUSE]", lockhouse.program().to_str().unwrap())
}

fn text(lockhouse: &Lockhouse, file: &str) -> String {
    std::fs::read_to_string(lockhouse.path(file)).unwrap()
}

#[test]
fn init_rewrites_former_entries_that_need_it_and_nothing_else() {
    let mut table = Table::new("former entries and the present init");
    for former in &FORMER {
        let Former { name, client, file, mode, changes, .. } = former;
        let lockhouse = Lockhouse::new();
        let before = former_text(&lockhouse, name);
        lockhouse.file(file, &before);
        let init = ["init", "--client", client, "--mode", mode, "--yes", "--no-connect"];
        let finished = lockhouse.run(&init);
        let mut expected = before.clone();
        for (from, to) in *changes {
            assert_eq!(expected.matches(from).count(), 1, "{from:?} in {expected}");
            expected = expected.replace(from, to);
        }
        let row = format!("{name}, --mode {mode}");
        table.row(format!("{row}: the file"), equal(text(&lockhouse, file), expected));
        let said = finished.stdout.contains("already has an entry for Lockhouse");
        table.row(
            format!("{row}: said"),
            ensure(said == changes.is_empty() && finished.status == Some(0), &finished),
        );
        let again = lockhouse.run(&init);
        let is_current = again.stdout.contains("already has an entry for Lockhouse");
        table.row(format!("{row}: a second time"), ensure(is_current, &again));
    }
    table.finish();
}

#[test]
fn status_and_doctor_name_entries_with_the_form_for_programs_and_the_command() {
    let mut table = Table::new("former entries in status and doctor");
    for Former { name, client, file, mode: _, changes: _, named } in &FORMER {
        let lockhouse = Lockhouse::new();
        let path = lockhouse.file(file, former_text(&lockhouse, name)).display().to_string();
        let status = lockhouse.run(&["status"]);
        let lines: Vec<&str> = status.stdout.lines().filter(|line| line.starts_with("warning: ")).collect();
        let is_named = |line: &&str| {
            line.contains(&path)
                && line.contains("`--answer value`")
                && named.is_some_and(|command| line.ends_with(&format!("; `{command}` rewrites it")))
        };
        table.row(
            format!("{name}: status"),
            ensure(lines.len() == usize::from(named.is_some()) && lines.iter().all(is_named), &status),
        );
        let json = lockhouse.run(&["status", "--json"]);
        table.row(format!("{name}: status --json"), equal((json.json(), json.status), (json!([]), Some(7))));
        // One entry that is named, and one that is not: the command starts workers, which takes long.
        if !["opencode", "gemini"].contains(client) {
            continue;
        }
        let doctor = lockhouse.run(&["doctor", "--json"]).json();
        let client = if *client == "opencode" { "OpenCode" } else { "Gemini CLI" };
        let entries: Vec<Value> =
            named.iter().map(|fix| json!({"client": client, "file": path, "fix": fix})).collect();
        table.row(format!("{name}: doctor --json"), equal(&doctor["client_entries"], &json!(entries)));
        let doctor = lockhouse.run(&["doctor"]).stdout;
        let warning = doctor.lines().find(|line| line.starts_with("warning: "));
        table.row(format!("{name}: doctor"), equal(warning, lines.first().copied()));
    }
    table.finish();
}

/// Returns the arguments of the Lockhouse entry in a client's file.
fn entry_arguments(text: &str) -> Vec<String> {
    // The list is written in TOML as in JSON.
    if let Some(list) = text.lines().find_map(|line| line.strip_prefix("args = ")) {
        return serde_json::from_str(list).unwrap();
    }
    let root: Value = serde_json::from_str(text).unwrap();
    let entry = ["mcpServers", "mcp"].iter().find_map(|section| root[*section].get("lockhouse")).unwrap();
    let list = |value: &Value| serde_json::from_value::<Vec<String>>(value.clone()).unwrap();
    if entry["command"].is_array() { list(&entry["command"])[1..].to_vec() } else { list(&entry["args"]) }
}

#[tokio::test]
async fn former_entries_start_a_server_that_answers_in_their_form() {
    let mut table = Table::new("servers of former entries");
    for Former { name, .. } in &FORMER {
        let lockhouse = Lockhouse::with_fixture();
        let arguments = entry_arguments(&former_text(&lockhouse, name));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = lockhouse.command(&arguments);
        if !arguments.contains(&"--answer") {
            // What the test adds by itself.
            command = std::process::Command::new(lockhouse.program());
            let full = lockhouse.command(&arguments);
            command.args(
                full.get_args().filter(|argument| *argument != "--answer" && *argument != "structured"),
            );
            command.env_clear().envs(full.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.current_dir(lockhouse.path("home"));
        }
        let session = Session::connect(command, Session::latest()).await;
        let code = json!({"language": "python", "code": "6 * 7"});
        let answer = session.call("run_code", code).await.unwrap();
        let texts: Vec<&str> =
            answer.content.iter().filter_map(|block| Some(block.as_text()?.text.as_str())).collect();
        let expected = if *name == "gemini.json" { "Value: 42" } else { "42" };
        table.row(*name, equal(texts, vec![expected]));
    }
    table.finish();
}
