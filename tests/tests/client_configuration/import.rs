//! Tests of `lockhouse import`, which copies upstream servers from the configuration files of AI clients.

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, on_terminal};

use crate::client_configuration::{dialect, files, mode};

const TOKEN: &str = "ghp_0123456789abcdefghij";

/// Returns a Lockhouse test fixture whose home directory has configuration files of several AI clients.
fn home_with_clients() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    let claude = format!(
        r#"{{
  "numStartups": 3,
  "mcpServers": {{
    "github": {{ "type": "http", "url": "https://api.githubcopilot.com/mcp/", "headers": {{ "Authorization": "Bearer {TOKEN}" }} }},
    "search": {{ "type": "stdio", "command": "npx", "args": ["-y", "search", "--api-key", "{TOKEN}"], "env": {{ "MODE": "fast", "KEY": "${{SEARCH_KEY}}" }} }},
    "old": {{ "type": "sse", "url": "https://mcp.example.com/sse" }},
    "lockhouse": {{ "type": "stdio", "command": "/usr/bin/lockhouse", "args": ["serve"] }}
  }}
}}"#
    );
    lockhouse.file("home/.claude.json", claude);
    let cursor = format!(
        r#"{{ "mcpServers": {{ "my db": {{ "command": "db-server", "env": {{ "DB_PASSWORD": "{TOKEN}" }} }}, "github": {{ "command": "another" }} }} }}"#
    );
    lockhouse.file("home/.cursor/mcp.json", cursor);
    lockhouse.file(
        "home/.codex/config.toml",
        "[mcp_servers.docs]\nurl = 'https://mcp.example.com/mcp'\nbearer_token_env_var = 'DOCS_TOKEN'\n",
    );
    lockhouse.file("home/.gemini/settings.json", "{ \"ui\": {} }");
    lockhouse.file("home/.mcp.json", r#"{"mcpServers": {"of-the-project": {"command": "x"}}}"#);
    lockhouse
}

fn config(lockhouse: &Lockhouse) -> String {
    std::fs::read_to_string(lockhouse.path("config/lockhouse/config.toml")).unwrap_or_default()
}

fn ok(finished: &CommandOutput) -> Result<(), String> {
    ensure(finished.status == Some(0) && !finished.transcript().contains(TOKEN), finished)
}

#[test]
fn import_previews_its_changes_and_writes_nothing_without_consent() {
    let lockhouse = home_with_clients().config("# mine\n[limits]\ncalls = 7 # few\n");
    let before = config(&lockhouse);
    let finished = lockhouse.run(&["import"]);
    insta::assert_snapshot!("import_shown", finished.transcript());
    let mut table = Table::new("an import that is only shown");
    table.row("without anyone to ask", equal(finished.status, Some(7)));
    table.row("with --dry-run", ok(&lockhouse.run(&["import", "--dry-run"])));
    table.row("the configuration stays", equal(config(&lockhouse), before));
    table.row(
        "no other file is written",
        equal(files(&lockhouse, "config/lockhouse"), vec!["config.toml".to_owned()]),
    );
    table.finish();
}

#[test]
fn servers_are_imported_once_and_secrets_move_to_separate_files() {
    let lockhouse = home_with_clients().config("# mine\n[limits]\ncalls = 7 # few\n");
    let finished = lockhouse.run(&["import", "--no-connect", "--yes"]);
    let written = config(&lockhouse);
    insta::assert_snapshot!(
        "import_written",
        written.replace(lockhouse.path("").to_str().unwrap(), "[DIR]/")
    );
    let mut table = Table::new("an import");
    table.row("the command succeeds", ok(&finished));
    table.row("no secret is in the configuration", ensure(!written.contains(TOKEN), &written));
    table.row(
        "comments stay",
        ensure(written.contains("# mine") && written.contains("calls = 7 # few"), &written),
    );
    let secrets = files(&lockhouse, "config/lockhouse/secrets");
    table.row("each secret has a file", equal(secrets.len(), 3));
    for name in &secrets {
        let path = lockhouse.path("config/lockhouse/secrets").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        table.row(
            format!("{name} is its owner's alone"),
            equal(mode(&path), 0o600).and(ensure(text.contains(TOKEN), text)),
        );
    }
    let backup = lockhouse.path("config/lockhouse/config.toml.lockhouse-backup-1");
    table.row(
        "there is a backup",
        ensure(std::fs::read_to_string(&backup).unwrap().starts_with("# mine\n[limits]"), ()),
    );
    for path in [&backup, &lockhouse.path("config/lockhouse/config.toml")] {
        table.row(format!("{} is its owner's alone", path.display()), equal(mode(path), 0o600));
    }
    table.row("no policy is written", ensure(!lockhouse.path("config/lockhouse/policy.toml").exists(), ()));

    let again = lockhouse.run(&["import", "--no-connect", "--yes"]);
    table.row(
        "a second import changes nothing",
        ok(&again).and(ensure(again.stdout.contains("nothing to import"), &again)),
    );
    table.row("and nothing changes", equal(config(&lockhouse), written));
    table.row("no second backup is written", equal(files(&lockhouse, "config/lockhouse").len(), 3));

    // From then on Lockhouse knows the servers, with the secrets that they refer to.
    lockhouse.file("config/lockhouse/policy.toml", "version = 1\n");
    let mut command = lockhouse.command(&["policy", "check"]);
    let checked = CommandOutput::run(command.env("SEARCH_KEY", "k").env("DOCS_TOKEN", "t"), b"");
    for name in ["github", "search", "my_db", "docs"] {
        let known = checked.stdout.contains(&format!("server {name} is configured"));
        table.row(
            format!("{name} is configured"),
            ensure(known && !checked.stderr.contains("left out"), &checked),
        );
    }
    table.finish();
}

/// Checks that `lockhouse import` warns about each imported secret that remains in the AI client's file, where others
/// may read it.
#[test]
fn import_warns_about_secrets_that_remain_in_the_client_file() {
    let lockhouse = home_with_clients();
    let path = lockhouse.path("home/.claude.json");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let cursor = lockhouse.path("home/.cursor/mcp.json");
    std::fs::set_permissions(&cursor, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let finished = lockhouse.run(&["import", "--no-connect", "--yes"]);
    let mut table = Table::new("secrets that remain in client files");
    table.row("the command succeeds", ok(&finished));
    for (address, server, key) in [
        (format!("{}:4", path.display()), "github", "Authorization"),
        (format!("{}:1", cursor.display()), "my db", "DB_PASSWORD"),
    ] {
        let words = format!("warning: {address} still contains plaintext secrets of server {server}: {key}");
        table.row(format!("{server}: its file and key"), ensure(finished.stderr.contains(&words), &finished));
    }
    let readable =
        |path: &std::path::Path| finished.stderr.contains(&format!("run `chmod 600 {}`", path.display()));
    table.row("a world-readable file", ensure(readable(&path), &finished));
    table.row("control: a private file", ensure(!readable(&cursor), &finished));
    table.row(
        "control: a server without secrets",
        ensure(!finished.stderr.contains("server docs"), &finished),
    );
    table.finish();
}

#[test]
fn import_can_be_limited_to_one_client_or_file() {
    let lockhouse = home_with_clients();
    lockhouse.file("home/any.txt", dialect("codex.toml"));
    let mut table = Table::new("--from");
    for (from, taken) in [
        ("cursor", "imported as my_db"),
        ("codex", "docs"),
        ("~/any.txt", "figma"),
        (".mcp.json", "of-the-project"),
    ] {
        let finished = lockhouse.run(&["import", "--dry-run", "--from", from]);
        let others = if from == "cursor" { "docs" } else { "my_db" };
        table.row(
            from,
            ok(&finished)
                .and(ensure(finished.stdout.contains(taken) && !finished.stdout.contains(others), &finished)),
        );
    }
    let finished = lockhouse.run(&["import", "--from", "no-such-client"]);
    table.row("neither a client nor a file", ensure(finished.status == Some(2), finished));
    let finished = Lockhouse::new().run(&["import", "--no-connect", "--yes"]);
    table
        .row("no client", ok(&finished).and(ensure(finished.stdout.contains("nothing to import"), finished)));
    table.finish();
}

#[test]
fn import_does_not_overwrite_a_configured_server() {
    let lockhouse = home_with_clients().config("[servers.github]\ncommand = 'mine'\n[servers.my-db]\ncommand = 'mine too'\n[servers.docs]\ncommand = 'off'\nenabled = false\n");
    let finished = lockhouse.run(&["import", "--no-connect", "--yes"]);
    let written = config(&lockhouse);
    let mut table = Table::new("names that are configured already");
    table.row("the command succeeds", ok(&finished));
    table.row(
        "the same name",
        ensure(written.contains("command = 'mine'") && !written.contains("githubcopilot"), &written),
    );
    table.row(
        "a name with the same identifier in code",
        ensure(
            !written.contains("my_db") && finished.stdout.contains("which is the same name in code"),
            &finished,
        ),
    );
    table.row(
        "a disabled server",
        ensure(written.contains("'off'") && !written.contains("DOCS_TOKEN"), &written),
    );
    table.row("another server is imported", ensure(written.contains("[servers.search]"), &written));
    table.finish();
}

/// Server URLs of the SSE and the streamable HTTP transport: the server's name, its URL, and whether it is one of HTTP+SSE.
const URLS: [(&str, &str, bool); 5] = [
    ("plain", "https://mcp.example.com/v1/sse", true),
    ("slash", "https://mcp.example.com/sse/", true),
    ("query", "https://mcp.example.com/sse?team=north", true),
    ("reference", "${TRACKER}/sse", true),
    ("streamable", "https://mcp.example.com/mcp?next=/sse", false),
];

#[test]
fn sse_urls_are_imported_only_with_the_option_whatever_their_declared_type() {
    let servers = URLS.map(|(name, url, _)| format!(r#""{name}": {{"type": "http", "url": "{url}"}}"#));
    // Codex knows no variables.
    let urls = URLS.iter().filter(|(name, ..)| *name != "reference");
    let codex: String = urls.map(|(name, url, _)| format!("[mcp_servers.{name}]\nurl = '{url}'\n")).collect();
    let files =
        [("claude.json", format!("{{\"mcpServers\": {{{}}}}}", servers.join(", "))), ("codex.toml", codex)];
    let mut table = Table::new("an import of URLs that end in /sse");
    for (file, text) in files {
        for option in [None, Some("--sse")] {
            let lockhouse = Lockhouse::new();
            let path = lockhouse.file(file, &text);
            let mut arguments = vec!["import", "--no-connect", "--yes", "--from", path.to_str().unwrap()];
            arguments.extend(option);
            let finished = lockhouse.run(&arguments);
            let written = config(&lockhouse);
            for (name, url, is_sse) in URLS {
                if file == "codex.toml" && name == "reference" {
                    continue;
                }
                let rows = |line: &&str| line.contains(&format!("  {name}  "));
                let row = finished.stdout.lines().find(rows).unwrap_or_default();
                let reported =
                    row.contains("; only if you confirm its transport, HTTP+SSE, which MCP has deprecated");
                let url = url.replace("${", "${env:");
                let entry = format!(
                    "[servers.{name}]\nurl = \"{url}\"\n{}",
                    if is_sse { "transport = \"sse\"\n" } else { "" }
                );
                let is_taken = written.contains(&entry);
                let holds = reported == is_sse && is_taken == (option.is_some() || !is_sse);
                table.row(format!("{file}, {option:?}: {name}"), ensure(holds, (&finished, &written)));
            }
            let told = finished.stdout.contains("MCP has deprecated this transport");
            let left = finished
                .stdout
                .contains("they stay where they are, and Lockhouse does not get them; --sse takes them over");
            table.row(
                format!("{file}, {option:?}: told"),
                ensure(told && left == option.is_none(), &finished),
            );
        }
    }
    table.finish();
}

/// Entries over HTTP+SSE in the formats of AI clients: the client's file, and its text.
const SSE_ENTRIES: [(&str, &str); 3] = [
    (
        "home/.claude.json",
        r#"{"numStartups": 3, "mcpServers": {"old": {"type": "sse", "url": "https://mcp.example.com/events"}}}"#,
    ),
    (
        "home/.cursor/mcp.json",
        r#"{"mcpServers": {"old": {"transport": "sse", "url": "https://mcp.example.com/events"}}}"#,
    ),
    (
        "home/.continue/config.yaml",
        "mcpServers:\n  - name: old\n    type: sse\n    url: https://mcp.example.com/events\n",
    ),
];

#[test]
fn a_person_confirms_the_transport_of_imported_servers() {
    const TAKEN: &str =
        "[servers.old]\nurl = \"https://mcp.example.com/events\"\ntransport = \"sse\"\non_change = \"ask\"\n";
    let mut table = Table::new("an import of servers over HTTP+SSE");
    for (file, text) in SSE_ENTRIES {
        for (typed, is_taken) in
            [("y\ny\n", true), ("n\n", false), ("\n", false), ("\x04", false), ("y\nn\n", false)]
        {
            let lockhouse = Lockhouse::new();
            lockhouse.file(file, text);
            let mut command = on_terminal(&lockhouse.command(&["import", "--no-connect"]));
            let finished = CommandOutput::run(&mut command, typed.as_bytes());
            let is_asked = finished.stdout.contains("Take them over nevertheless? [y/N]");
            let expected = if is_taken { TAKEN } else { "" };
            table.row(
                format!("{file}: {typed:?}"),
                equal(config(&lockhouse).as_str(), expected).and(ensure(is_asked, &finished)),
            );
        }
        let lockhouse = Lockhouse::new();
        lockhouse.file(file, text);
        let finished = lockhouse.run(&["import", "--no-connect", "--sse", "--dry-run"]);
        table.row(format!("{file}: --dry-run"), ok(&finished).and(equal(config(&lockhouse).as_str(), "")));
        let finished = lockhouse.run(&["import", "--no-connect", "--sse", "--yes"]);
        table.row(format!("{file}: --sse"), ok(&finished).and(equal(config(&lockhouse).as_str(), TAKEN)));
        let again = lockhouse.run(&["import", "--no-connect", "--sse", "--yes"]);
        table.row(
            format!("{file}: again"),
            ensure(again.stdout.contains("there is nothing to import"), &again),
        );
    }
    let lockhouse = Lockhouse::new();
    lockhouse.file(SSE_ENTRIES[0].0, SSE_ENTRIES[0].1);
    lockhouse
        .file("home/.cursor/mcp.json", r#"{"mcpServers": {"old": {"url": "https://mcp.example.com/mcp"}}}"#);
    let finished = lockhouse.run(&["import", "--no-connect", "--sse", "--yes"]);
    let written = config(&lockhouse);
    let is_streamable = written.contains("https://mcp.example.com/mcp") && !written.contains("sse");
    table.row(
        "another client has streamable HTTP under the name",
        ensure(is_streamable, (&finished, &written)),
    );
    table.finish();
}

/// A name cannot begin a line, which would look like one of Lockhouse.
#[test]
fn the_name_of_a_server_stays_in_its_line() {
    const FORGED: &str = "lockhouse: all servers were checked";
    let name = format!("notes\n{FORGED}\n\u{1b}[2J");
    let entry = serde_json::json!({"command": "true", "env": {"API_TOKEN": TOKEN}, "cwd": "/", "disabled": false, "autoApprove": ["x"]});
    let unusable = serde_json::json!({"command": 3});
    let mut table = Table::new("names with line feeds");
    for entry in [entry, unusable] {
        let lockhouse = Lockhouse::new();
        let text = serde_json::json!({"mcpServers": {&name: entry}}).to_string();
        lockhouse.file("home/.cursor/mcp.json", &text);
        let file = lockhouse.file("home/own/mcp.json", &text).display().to_string();
        let lockhouse = lockhouse.config(&format!("servers_files = [{file:?}]\n"));
        for arguments in [
            &["import", "--dry-run"][..],
            &["setup", "--dry-run"],
            &["config", "check"],
            &["server", "list"],
            &["server", "get", &name],
            &["tools", "list"],
            &["doctor"],
            &["init", "--dry-run"],
            &["import", "--yes", "--no-connect"],
        ] {
            let finished = lockhouse.run(arguments);
            let forged =
                finished.stdout.lines().chain(finished.stderr.lines()).any(|line| line.starts_with(FORGED));
            let is_shown = arguments[0] != "import" || finished.stdout.contains("all servers were checked");
            let holds = !forged && is_shown && !finished.transcript().contains('\u{1b}');
            table.row(format!("{entry}: {arguments:?}"), ensure(holds, &finished));
        }
    }
    table.finish();
}
