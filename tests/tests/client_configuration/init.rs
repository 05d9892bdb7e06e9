//! Tests of `lockhouse init`, which adds Lockhouse as an MCP server to the configuration files of AI clients.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};

use crate::client_configuration::{at_a_terminal, files, mode};

const CURSOR: &str = "{\n    \"mcpServers\": {\n        \"github\": { \"command\": \"x\", \"env\": { \"TOKEN\": \"SEKRET\" } }\n    }\n}\n";
const ZED: &str = "// mine\n{\n  \"theme\": \"One Dark\", // SEKRET\n}\n";
const CODEX: &str = "model = \"x\" # SEKRET\n\n[mcp_servers.a]\ncommand = \"a\"\n";

fn home_with_clients() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/.cursor/mcp.json", CURSOR);
    lockhouse.file("config/zed/settings.json", ZED);
    lockhouse.file("home/.codex/config.toml", CODEX);
    lockhouse
}

fn text(lockhouse: &Lockhouse, name: &str) -> String {
    std::fs::read_to_string(lockhouse.path(name)).unwrap()
}

/// Replaces the path of the `lockhouse` program, which differs between machines, by `[LOCKHOUSE]`.
fn without_paths(lockhouse: &Lockhouse, text: &str) -> String {
    text.replace(lockhouse.program().to_str().unwrap(), "[LOCKHOUSE]")
}

#[test]
fn init_previews_the_entry_and_writes_nothing_without_consent() {
    let lockhouse = home_with_clients();
    let finished = lockhouse.run(&["init"]);
    insta::assert_snapshot!("init_shown", without_paths(&lockhouse, &finished.transcript()));
    assert!(!finished.transcript().contains("SEKRET"), "{finished:?}");
    assert_eq!(lockhouse.run(&["init", "--dry-run"]).status, Some(0));
    assert_eq!(text(&lockhouse, "home/.cursor/mcp.json"), CURSOR);
    assert_eq!(files(&lockhouse, "home/.cursor"), ["mcp.json"]);
}

#[test]
fn init_adds_the_entry_once_and_changes_nothing_else() {
    let lockhouse = home_with_clients();
    let finished = lockhouse.run(&["init", "--yes"]);
    let mut table = Table::new("init");
    table.row(
        "the command succeeds",
        ensure(finished.status == Some(0) && !finished.transcript().contains("SEKRET"), &finished),
    );
    for (name, before) in [
        ("home/.cursor/mcp.json", CURSOR),
        ("config/zed/settings.json", ZED),
        ("home/.codex/config.toml", CODEX),
    ] {
        let now = text(&lockhouse, name);
        insta::assert_snapshot!(name.replace('/', "_"), without_paths(&lockhouse, &now));
        let mut lines = now.lines();
        let kept = before.lines().all(|line| lines.any(|other| other == line));
        table.row(format!("{name}: every line is kept"), ensure(kept, &now));
        let backup = format!("{name}.lockhouse-backup-1");
        table.row(format!("{name}: there is a backup"), equal(text(&lockhouse, &backup).as_str(), before));
        table.row(
            format!("{name}: the file is private to its owner"),
            equal(mode(&lockhouse.path(&backup)), 0o600),
        );
    }
    let again = lockhouse.run(&["init", "--yes"]);
    table.row("the second run finds the entry", ensure(again.stdout.matches("already").count() == 3, &again));
    table.row("and there is no other backup", equal(files(&lockhouse, "home/.cursor").len(), 2));
    table.finish();
}

#[test]
fn the_entry_written_for_each_client_can_be_read_back() {
    let mut table = Table::new("clients");
    for client in [
        "claude-code",
        "claude-desktop",
        "cline",
        "codex",
        "continue",
        "copilot",
        "cursor",
        "gemini",
        "opencode",
        "qwen",
        "vscode",
        "windsurf",
        "zed",
    ] {
        let lockhouse = Lockhouse::new();
        let finished = lockhouse.run(&["init", "--client", client, "--yes"]);
        table.row(
            format!("{client}: written"),
            ensure(finished.status == Some(0) && finished.stdout.contains("wrote"), &finished),
        );
        let found = lockhouse.run(&["import", "--from", client]);
        table.row(
            format!("{client}: the entry is recognized as Lockhouse"),
            ensure(found.stdout.contains("it is Lockhouse itself"), &found),
        );
    }
    let finished = Lockhouse::new().run(&["init", "--yes"]);
    table.row(
        "without any client",
        ensure(finished.status == Some(2) && finished.stderr.contains("--client"), &finished),
    );
    table.finish();
}

#[test]
fn an_unwritable_file_is_reported_and_the_others_are_changed() {
    let lockhouse = home_with_clients();
    lockhouse.file("home/.gemini/settings.json", "{\n  \"mcpServers\": [\"SEKRET\"]\n}\n");
    lockhouse.file("home/.qwen/settings.json", "{ \"mcpServers\": { \"a\": \"SEKRET }\n");
    lockhouse.file(
        "home/.claude.json",
        r#"{"mcpServers": {"tools": {"type": "stdio", "command": "lockhouse", "args": ["serve"]}}}"#,
    );
    let finished = lockhouse.run(&["init", "--yes"]);
    assert!(finished.status == Some(2) && !finished.transcript().contains("SEKRET"), "{finished:?}");
    assert!(finished.stderr.contains("mcpServers is not an object"), "{finished:?}");
    assert!(finished.stderr.contains(".qwen/settings.json:1"), "{finished:?}");
    assert!(finished.stdout.contains("Claude Code already has an entry for Lockhouse"), "{finished:?}");
    assert!(text(&lockhouse, "home/.cursor/mcp.json").contains("lockhouse"), "{finished:?}");
}

#[test]
fn symbolic_links_are_kept_and_configuration_paths_are_passed_on() {
    let lockhouse = Lockhouse::new();
    let target = lockhouse.file("dotfiles/mcp.json", "{}");
    std::fs::create_dir_all(lockhouse.path("home/.cursor")).unwrap();
    let link = lockhouse.path("home/.cursor/mcp.json");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let finished = lockhouse.run(&["init", "--yes", "--config", "my.toml"]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    let written = std::fs::read_to_string(&target).unwrap();
    let config = lockhouse.path("home/my.toml").display().to_string();
    assert!(written.contains("--config") && written.contains(&config), "{written}");
}

/// Tests that Enter, the default as a word and no question at all write the same, and that another word writes nothing.
#[test]
fn an_empty_answer_means_the_default_mode() {
    let on = "[features]\ncode_mode = true\n";
    let written = |lines: Option<&[&str]>| {
        let lockhouse = Lockhouse::new();
        lockhouse.file("home/.codex/config.toml", on);
        let init = ["init", "--client", "codex", "--no-connect"];
        let finished = match lines {
            Some(lines) => at_a_terminal(&lockhouse, lines, &init),
            None => lockhouse.run(&[&init[..], &["--yes"]].concat()),
        };
        (without_paths(&lockhouse, &text(&lockhouse, "home/.codex/config.toml")), finished)
    };
    let mut table = Table::new("answers to the question for the mode");
    let expected = "[features]\ncode_mode = { enabled = true, direct_only_tool_namespaces = [\"mcp__lockhouse\"] }\n\n\
        [mcp_servers.lockhouse]\ncommand = \"[LOCKHOUSE]\"\nargs = [\"serve\"]\nsupports_parallel_tool_calls = true\n";
    let answers: [(&str, Option<&[&str]>); 3] =
        [("Enter", Some(&["", "y", ""])), ("code", Some(&["code", "y", ""])), ("--yes", None)];
    for (case, lines) in answers {
        table.row(case, equal(written(lines).0.as_str(), expected));
    }
    let both = written(Some(&["both", "y", ""])).0;
    let is_both = both.starts_with(on) && both.contains("args = [\"serve\", \"--expose\", \"both\"]");
    table.row("both", ensure(is_both, &both));
    let (after_another, finished) = written(Some(&["cod", "both", "y", ""]));
    let asked_again = finished.stdout.contains("answer code, direct or both");
    table.row("another word is asked again", ensure(asked_again, &finished).and(equal(after_another, both)));
    table.finish();
}
