//! `lockhouse init`

use lockhouse_tests::{Lockhouse, Table, ensure, equal};

use crate::{files, mode};

const CURSOR: &str = "{\n    \"mcpServers\": {\n        \"github\": { \"command\": \"x\", \"env\": { \"TOKEN\": \"SEKRET\" } }\n    }\n}\n";
const ZED: &str = "// mine\n{\n  \"theme\": \"One Dark\", // SEKRET\n}\n";
const CODEX: &str = "model = \"x\" # SEKRET\n\n[mcp_servers.a]\ncommand = \"a\"\n";

fn world() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/.cursor/mcp.json", CURSOR);
    lockhouse.file("config/zed/settings.json", ZED);
    lockhouse.file("home/.codex/config.toml", CODEX);
    lockhouse
}

fn text(lockhouse: &Lockhouse, name: &str) -> String {
    std::fs::read_to_string(lockhouse.path(name)).unwrap()
}

/// Without what depends on where the tests are built.
fn told(lockhouse: &Lockhouse, text: &str) -> String {
    text.replace(lockhouse.program().to_str().unwrap(), "[LOCKHOUSE]")
}

#[test]
fn the_entry_is_shown_and_nothing_is_written_without_consent() {
    let lockhouse = world();
    let finished = lockhouse.run(&["init"]);
    insta::assert_snapshot!("init_shown", told(&lockhouse, &finished.told()));
    assert!(!finished.told().contains("SEKRET"), "{finished:?}");
    assert_eq!(lockhouse.run(&["init", "--dry-run"]).status, Some(0));
    assert_eq!(text(&lockhouse, "home/.cursor/mcp.json"), CURSOR);
    assert_eq!(files(&lockhouse, "home/.cursor"), ["mcp.json"]);
}

#[test]
fn the_entry_is_written_once_and_everything_else_stays() {
    let lockhouse = world();
    let finished = lockhouse.run(&["init", "--yes"]);
    let mut table = Table::new("init");
    table.row(
        "it is done",
        ensure(finished.status == Some(0) && !finished.told().contains("SEKRET"), &finished),
    );
    for (name, before) in [
        ("home/.cursor/mcp.json", CURSOR),
        ("config/zed/settings.json", ZED),
        ("home/.codex/config.toml", CODEX),
    ] {
        let now = text(&lockhouse, name);
        insta::assert_snapshot!(name.replace('/', "_"), told(&lockhouse, &now));
        let mut lines = now.lines();
        let kept = before.lines().all(|line| lines.any(|other| other == line));
        table.row(format!("{name}: every line is kept"), ensure(kept, &now));
        let backup = format!("{name}.lockhouse-backup-1");
        table.row(format!("{name}: there is a backup"), equal(text(&lockhouse, &backup).as_str(), before));
        table.row(format!("{name}: it is its owner's alone"), equal(mode(&lockhouse.path(&backup)), 0o600));
    }
    let again = lockhouse.run(&["init", "--yes"]);
    table.row("the second time it is there", ensure(again.stdout.matches("already").count() == 3, &again));
    table.row("and there is no other backup", equal(files(&lockhouse, "home/.cursor").len(), 2));
    table.finish();
}

#[test]
fn every_client_reads_back_the_entry_that_is_written_for_it() {
    let mut table = Table::new("clients");
    for client in [
        "claude-code",
        "claude-desktop",
        "codex",
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
            format!("{client}: it is Lockhouse itself"),
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
fn a_file_that_cannot_be_changed_is_told_and_the_others_are_changed() {
    let lockhouse = world();
    lockhouse.file("home/.gemini/settings.json", "{\n  \"mcpServers\": [\"SEKRET\"]\n}\n");
    lockhouse.file("home/.qwen/settings.json", "{ \"mcpServers\": { \"a\": \"SEKRET }\n");
    lockhouse.file(
        "home/.claude.json",
        r#"{"mcpServers": {"tools": {"type": "stdio", "command": "lockhouse", "args": ["serve"]}}}"#,
    );
    let finished = lockhouse.run(&["init", "--yes"]);
    assert!(finished.status == Some(2) && !finished.told().contains("SEKRET"), "{finished:?}");
    assert!(finished.stderr.contains("mcpServers is not an object"), "{finished:?}");
    assert!(finished.stderr.contains(".qwen/settings.json:1"), "{finished:?}");
    assert!(finished.stdout.contains("Claude Code points at Lockhouse already"), "{finished:?}");
    assert!(text(&lockhouse, "home/.cursor/mcp.json").contains("lockhouse"), "{finished:?}");
}

#[test]
fn a_link_stays_a_link_and_named_files_are_passed_on() {
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
