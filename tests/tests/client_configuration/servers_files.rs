//! Tests of the option `--servers` and the key `servers_files`, which make Lockhouse use the servers in configuration
//! files of AI clients.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, fixture_server};

use crate::client_configuration::dialect;

/// Returns the sorted names of all configured servers, whether or not they can be started, as `lockhouse policy check`
/// lists them when it is run with `arguments`. Also returns the standard error of that command.
fn server_names(lockhouse: &Lockhouse, arguments: &[&str]) -> (Vec<String>, String) {
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
fn the_format_of_a_client_file_is_detected_by_content() {
    let mut table = Table::new("servers of each dialect");
    for (file, servers) in [
        ("claude_desktop.json", "filesystem postgres"),
        ("codex.toml", "docs login"),
        ("windsurf.json", ""),
        ("zed.jsonc", "local older remote"),
        ("vscode_settings.jsonc", ""),
        ("opencode_2.jsonc", "everything"),
        ("seed_coordinator.json", "arxiv chroma"),
        ("seed_code_mode.json", "a-b filesystem"),
        ("own.toml", "new old person"),
    ] {
        let lockhouse = Lockhouse::new().policy("version = 1\n");
        let path = lockhouse.file("anything", dialect(file)).display().to_string();
        let (names, reported) = server_names(&lockhouse, &["--servers", &path]);
        table.row(file, ensure(names.join(" ") == servers, (names, reported)));
    }
    table.finish();
}

#[test]
fn of_servers_with_the_same_name_the_first_is_used_and_the_rest_are_reported() {
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
    insta::assert_snapshot!("collisions", finished.transcript());
}

#[test]
fn a_server_from_a_client_file_can_be_called() {
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
        // The tool permissions in a client's file do not permit a call in Lockhouse.
        table.row(name, ensure(permitted("add") && !permitted("fail"), &finished));
    }
    table.finish();
}

#[test]
fn errors_in_client_files_have_instructions_and_no_secrets() {
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
        let reported = finished.transcript();
        assert!(!reported.replace("${SEKRET}", "").contains("SEKRET"), "{reported}");
        insta::assert_snapshot!(name, reported);
    }
    let finished = Lockhouse::new().config(&dialect("bad/own.toml")).run(&["policy", "check"]);
    assert!(finished.status == Some(2) && !finished.stderr.contains("SEKRET"), "{finished:?}");
}

#[test]
fn secrets_are_read_from_the_keyring_and_its_absence_is_reported() {
    let lockhouse = Lockhouse::new().policy("version = 1\n").config(
        "[servers.kept]\ncommand = 'x'\nenv = { A = '${keyring:service/user}' }\n[servers.lost]\ncommand = 'x'\nenv = { A = '${keyring:service/other}' }\n",
    );
    let script = "#!/bin/sh\n[ \"$*\" = 'lookup service service username user' ] && printf SEKRET\n";
    let tool = lockhouse.file("bin/secret-tool", script);
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let with_tool =
        CommandOutput::run(lockhouse.command(&["policy", "check"]).env("PATH", lockhouse.path("bin")), b"");
    let without =
        CommandOutput::run(lockhouse.command(&["policy", "check"]).env("PATH", lockhouse.path("none")), b"");
    let mut table = Table::new("values from a keyring");
    let known = |finished: &CommandOutput, name: &str| {
        finished.stdout.contains(&format!("server {name} is configured"))
    };
    table.row("an existing entry", ensure(known(&with_tool, "kept"), &with_tool));
    let reported = with_tool.stderr.contains("service/other cannot be read: there is no such entry");
    table.row("a missing entry", ensure(!known(&with_tool, "lost") && reported, &with_tool));
    let reported = without.stderr.contains("secret-tool is not installed");
    table.row("no keyring", ensure(!known(&without, "kept") && reported, &without));
    table.row("its value is not printed", ensure(!with_tool.transcript().contains("SEKRET"), &with_tool));
    table.finish();
}

#[test]
fn servers_beyond_the_maximum_are_skipped() {
    let entry = |number: usize| format!("\"s{number}\": {{\"command\": \"x\"}}");
    let entries: Vec<String> = (0..501).map(entry).collect();
    let lockhouse = Lockhouse::new().policy("version = 1\n");
    let path = lockhouse.file("many.json", format!("{{\"mcpServers\": {{{}}}}}", entries.join(",")));
    let (names, reported) = server_names(&lockhouse, &["--servers", path.to_str().unwrap()]);
    assert_eq!(names.len(), 500);
    assert!(reported.contains("\"s500\" is left out: the limit of 500 servers is reached"), "{reported}");
}
