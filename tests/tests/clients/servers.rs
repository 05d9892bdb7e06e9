//! `--servers` and `servers_files`.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Finished, Lockhouse, Table, ensure, fixture_server};

use crate::dialect;

/// The names of the servers in front of which Lockhouse stands, whatever becomes of them.
fn named(lockhouse: &Lockhouse, arguments: &[&str]) -> (Vec<String>, String) {
    let finished = lockhouse.run(&[&["policy", "check"], arguments].concat());
    let mut names: Vec<String> = finished
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("server ")?.split_once(" is configured"))
        .map(|(name, _)| name.to_owned())
        .collect();
    names.sort();
    (names, finished.stderr)
}

#[test]
fn every_dialect_is_known_by_its_content_whatever_the_file_is_called() {
    let mut table = Table::new("servers of each dialect");
    for (file, servers) in [
        ("claude_desktop.json", "filesystem postgres"),
        ("codex.toml", "docs"),
        ("windsurf.json", ""),
        ("zed.jsonc", "local older remote"),
        ("vscode_settings.jsonc", ""),
        ("opencode_2.jsonc", "everything"),
        ("seed_coordinator.json", "arxiv chroma"),
        ("seed_code_mode.json", "a-b filesystem"),
        ("own.toml", "person"),
    ] {
        let lockhouse = Lockhouse::new().policy("version = 1\n");
        let path = lockhouse.file("anything", dialect(file)).display().to_string();
        let (names, told) = named(&lockhouse, &["--servers", &path]);
        table.row(file, ensure(names.join(" ") == servers, (names, told)));
    }
    table.finish();
}

#[test]
fn of_one_name_the_first_file_counts_and_the_rest_is_told() {
    let lockhouse = Lockhouse::new().policy("version = 1\n");
    let one = lockhouse
        .file("one.json", r#"{"mcpServers": {"a": {"command": "one"}, "my server.io": {"command": "x"}}}"#);
    let two =
        lockhouse.file("two.toml", "[mcp_servers.a]\ncommand = 'two'\n[mcp_servers.b]\ncommand = 'x'\n");
    lockhouse
        .file("home/.claude.json", r#"{"mcpServers": {"b": {"command": "x"}, "c-d": {"command": "x"}}}"#);
    let config = "servers_files = ['~/.claude.json', '~/gone.json']\n[servers.a]\ncommand = 'three'\n[servers.c_d]\ncommand = 'x'\n";
    let lockhouse = lockhouse.config(config);
    let (one, two) = (one.display().to_string(), two.display().to_string());
    let finished = lockhouse.run(&["policy", "check", "--servers", &one, "--servers", &two]);
    insta::assert_snapshot!("collisions", finished.told());
}

#[test]
fn a_server_of_a_clients_file_is_called() {
    let command = fixture_server().display().to_string();
    let mut table = Table::new("a call to a server of each dialect");
    for (name, text) in [
        (
            "json",
            format!(
                r#"{{"mcpServers": {{"fixture": {{"command": {command:?}, "alwaysAllow": ["fail"]}}, "bad": 3}}}}"#
            ),
        ),
        (
            "jsonc",
            format!(
                "{{\n// c\n\"mcp\": {{\"fixture\": {{\"type\": \"local\", \"command\": [{command:?}],}},}},}}"
            ),
        ),
        ("toml", format!("[mcp_servers.fixture]\ncommand = {command:?}\nargs = []\n")),
    ] {
        let lockhouse = Lockhouse::new().policy("version = 1\n[servers.fixture]\nallow = ['add']\n");
        let path = lockhouse.file("servers", text).display().to_string();
        let finished = lockhouse.run(&["tools", "list", "--json", "--servers", &path]);
        let tools = finished.json();
        let permitted = |tool: &str| {
            tools.as_array().unwrap().iter().any(|row| row["tool"] == tool && row["policy"] == "allow")
        };
        // What a client allows is not permission here.
        table.row(name, ensure(permitted("add") && !permitted("fail"), &finished));
    }
    table.finish();
}

#[test]
fn a_person_reads_what_to_do_about_a_broken_file_and_sees_no_secret() {
    for name in [
        "json_comma.json",
        "json_string.json",
        "toml_string.toml",
        "no_servers.json",
        "entries.json",
        "own.toml",
    ] {
        let lockhouse = Lockhouse::new().policy("version = 1\n");
        let path = lockhouse.file("servers", dialect(&format!("bad/{name}"))).display().to_string();
        let finished = lockhouse.run(&["policy", "check", "--servers", &path]);
        let told = finished.told();
        assert!(!told.replace("${SEKRET}", "").contains("SEKRET"), "{told}");
        insta::assert_snapshot!(name, told);
    }
    let finished = Lockhouse::new().config(&dialect("bad/own.toml")).run(&["policy", "check"]);
    assert!(finished.status == Some(2) && !finished.stderr.contains("SEKRET"), "{finished:?}");
}

#[test]
fn a_keyring_is_asked_and_its_absence_told() {
    let lockhouse = Lockhouse::new().policy("version = 1\n").config(
        "[servers.kept]\ncommand = 'x'\nenv = { A = '${keyring:service/user}' }\n[servers.lost]\ncommand = 'x'\nenv = { A = '${keyring:service/other}' }\n",
    );
    let script = "#!/bin/sh\n[ \"$*\" = 'lookup service service username user' ] && printf SEKRET\n";
    let tool = lockhouse.file("bin/secret-tool", script);
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let with_tool =
        Finished::of(lockhouse.command(&["policy", "check"]).env("PATH", lockhouse.path("bin")), b"");
    let without =
        Finished::of(lockhouse.command(&["policy", "check"]).env("PATH", lockhouse.path("none")), b"");
    let mut table = Table::new("values from a keyring");
    let known =
        |finished: &Finished, name: &str| finished.stdout.contains(&format!("server {name} is configured"));
    table.row("an entry that is there", ensure(known(&with_tool, "kept"), &with_tool));
    let told = with_tool.stderr.contains("service/other cannot be read: there is no such entry");
    table.row("one that is not", ensure(!known(&with_tool, "lost") && told, &with_tool));
    let told = without.stderr.contains("secret-tool is not installed");
    table.row("no keyring", ensure(!known(&without, "kept") && told, &without));
    table.row("its value is not told", ensure(!with_tool.told().contains("SEKRET"), &with_tool));
    table.finish();
}

#[test]
fn more_servers_than_are_held_are_left_out() {
    let entry = |number: usize| format!("\"s{number}\": {{\"command\": \"x\"}}");
    let entries: Vec<String> = (0..501).map(entry).collect();
    let lockhouse = Lockhouse::new().policy("version = 1\n");
    let path = lockhouse.file("many.json", format!("{{\"mcpServers\": {{{}}}}}", entries.join(",")));
    let (names, told) = named(&lockhouse, &["--servers", path.to_str().unwrap()]);
    assert_eq!(names.len(), 500);
    assert!(told.contains("\"s500\" is left out: there are 500 others"), "{told}");
}
