//! Tests of `lockhouse setup`, which takes servers over from AI clients, and of `lockhouse setup --undo`.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, fixture_server, on_terminal};

use crate::client_configuration::{files, mode};
use crate::sandbox::missing_protections::run_without;

const TOKEN: &str = "ghp_0123456789abcdefghij";
const CLAUDE: &str = "home/.claude.json";
const CODEX: &str = "home/.codex/config.toml";
const CURSOR: &str = "home/.cursor/mcp.json";
const GEMINI: &str = "home/.gemini/settings.json";
const OPENCODE: &str = "config/opencode/opencode.json";
const CONTINUE: &str = "home/.continue/config.yaml";

/// Files of AI clients, each with servers that Lockhouse can take over and with other settings. The server `github` is
/// the same in two of them.
const FILES: [(&str, &str); 6] = [
    (
        CLAUDE,
        "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"github\": { \"type\": \"stdio\", \"command\": \"git-server\", \"env\": { \"TOKEN\": \"ghp_0123456789abcdefghij\" } },\n    \"old\": { \"type\": \"sse\", \"url\": \"https://mcp.example.com/sse\" }\n  },\n  \"ratio\": 1.50\n}\n",
    ),
    (
        CODEX,
        "model = \"x\" # mine\n\n# of docs\n[mcp_servers.docs]\ncommand = 'docs'\n\n[mcp_servers.docs.env]\nMODE = \"fast\"\n\n[tui]\ntheme = \"a\"\n",
    ),
    (
        CURSOR,
        "{\"mcpServers\": {\"github\": {\"command\": \"git-server\", \"env\": {\"TOKEN\": \"ghp_0123456789abcdefghij\"}}, \"db\": {\"command\": \"db\"}}}",
    ),
    (
        GEMINI,
        "{\r\n  \"ui\": {},\r\n  \"mcpServers\": {\r\n    \"search\": {\r\n      \"command\": \"search\"\r\n    }\r\n  }\r\n}\r\n",
    ),
    (
        OPENCODE,
        "// mine\n{\n  \"mcp\": {\n    \"files\": {\"type\": \"local\", \"command\": [\"files\"]}, // c\n  },\n}\n",
    ),
    (
        CONTINUE,
        "name: Mine # c\nmcpServers:\n  # of notes\n  - name: notes\n    command: notes\n    args: [\"a\"]\nrules: []\n",
    ),
];
const SERVERS: [&str; 6] = ["github", "docs", "db", "search", "files", "notes"];

fn home_with_clients() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    for (name, text) in FILES {
        lockhouse.file(name, text);
    }
    lockhouse
}

fn text(lockhouse: &Lockhouse, name: &str) -> String {
    std::fs::read_to_string(lockhouse.path(name)).unwrap_or_default()
}

fn setup(lockhouse: &Lockhouse, arguments: &[&str]) -> CommandOutput {
    lockhouse.run(&[&["setup"], arguments].concat())
}

fn ok(finished: &CommandOutput) -> Result<(), String> {
    ensure(finished.status == Some(0) && !finished.transcript().contains(TOKEN), finished)
}

/// Adds a row for each client's file, which must have the content of [`FILES`].
fn original_rows(table: &mut Table, lockhouse: &Lockhouse, when: &str) {
    for (name, before) in FILES {
        table.row(format!("{when}: {name} is as before"), equal(text(lockhouse, name).as_str(), before));
    }
}

#[test]
fn setup_moves_servers_and_undo_restores_every_byte() {
    let lockhouse = home_with_clients();
    let mut table = Table::new("setup and its undo");
    let finished = setup(&lockhouse, &["--yes", "--no-connect"]);
    table.row("the command succeeds", ok(&finished));
    let config = text(&lockhouse, "config/lockhouse/config.toml");
    for name in SERVERS {
        let is_there = config.contains(&format!("[servers.{name}]"));
        table.row(format!("{name} is configured"), ensure(is_there, &config));
        let rows = finished.stdout.lines().filter(|line| line.starts_with(&format!("{name} "))).count();
        table.row(format!("{name} is shown once"), equal(rows, 1));
    }
    let shown = finished.stdout.contains("Claude Code, Cursor");
    table.row("the clients of a server are named", ensure(shown, &finished));
    for (name, _) in FILES {
        let now = text(&lockhouse, name);
        let moved = SERVERS.iter().all(|server| {
            !now.contains(&format!("{server}\""))
                && !now.contains(&format!("mcp_servers.{server}"))
                && !now.contains(&format!("name: {server}"))
        });
        table.row(format!("{name} has only Lockhouse"), ensure(moved && now.contains("lockhouse"), &now));
        table.row(format!("{name} has no secret"), ensure(!now.contains(TOKEN), &now));
    }
    let sse = text(&lockhouse, CLAUDE).contains("\"old\"") && finished.stdout.contains("HTTP+SSE");
    table.row("a server over HTTP+SSE stays, with the reason", ensure(sse, &finished));
    let secret = lockhouse.path("config/lockhouse/secrets/github.TOKEN");
    table.row("the secret has a file", equal(std::fs::read_to_string(&secret).unwrap().as_str(), TOKEN));
    for name in files(&lockhouse, "state/lockhouse/setup") {
        let path = lockhouse.path("state/lockhouse/setup").join(&name);
        table.row(format!("journal: {name} is its owner's alone"), equal(mode(&path), 0o600));
    }
    let again = setup(&lockhouse, &["--yes", "--no-connect"]);
    table.row(
        "a second run has nothing to do",
        ok(&again).and(ensure(again.stdout.contains("nothing to change"), &again)),
    );
    table.row("and changes nothing", equal(text(&lockhouse, "config/lockhouse/config.toml"), config));

    let shown = setup(&lockhouse, &["--undo", "--dry-run"]);
    table.row(
        "an undo is shown first",
        ok(&shown).and(ensure(text(&lockhouse, CLAUDE).contains("lockhouse"), &shown)),
    );
    table.row("undo", ok(&setup(&lockhouse, &["--undo", "--yes"])));
    original_rows(&mut table, &lockhouse, "after undo");
    table.row("Lockhouse's files are gone", equal(files(&lockhouse, "config/lockhouse"), Vec::new()));
    table.row("the journal is gone", equal(files(&lockhouse, "state/lockhouse/setup"), Vec::new()));
    let nothing = setup(&lockhouse, &["--undo", "--yes"]);
    table.row(
        "a second undo",
        ok(&nothing).and(ensure(nothing.stdout.contains("nothing to take back"), &nothing)),
    );
    table.finish();
}

/// A later change of each client's file: what is replaced, and by what.
const CHANGES: [(&str, &str, &str); 6] = [
    (CLAUDE, "\"ratio\": 1.50", "\"ratio\": 1.50,\n  \"later\": true"),
    (CODEX, "# mine\n", "# mine\n\n[mcp_servers.later]\ncommand = \"later\"\n"),
    (CURSOR, "{\"mcpServers\": {", "{\"later\": 1, \"mcpServers\": {"),
    (GEMINI, "\"ui\": {}", "\"ui\": {\"later\": 2}"),
    (OPENCODE, "// mine\n{", "// later\n{"),
    (CONTINUE, "rules: []", "rules: [later]"),
];

#[test]
fn undo_keeps_what_was_changed_since() {
    let lockhouse = home_with_clients();
    let mut table = Table::new("an undo after other changes");
    table.row("setup", ok(&setup(&lockhouse, &["--yes", "--no-connect"])));
    for (name, from, to) in CHANGES {
        let now = text(&lockhouse, name);
        assert!(now.contains(from), "{now}");
        lockhouse.file(name, now.replacen(from, to, 1));
    }
    let config = text(&lockhouse, "config/lockhouse/config.toml");
    let config = format!("{config}\n# mine\n[servers.later]\ncommand = \"later\"\n");
    lockhouse.file("config/lockhouse/config.toml", config);
    let finished = setup(&lockhouse, &["--undo", "--yes"]);
    table.row("undo", ok(&finished));
    for ((name, from, to), (_, before)) in CHANGES.into_iter().zip(FILES) {
        let now = text(&lockhouse, name);
        table.row(format!("{name}: the later change stays"), ensure(now.contains(to), &now));
        table.row(format!("{name}: no entry for Lockhouse"), ensure(!now.contains("lockhouse"), &now));
        let mut lines = before.replacen(from, to, 1).lines().map(str::to_owned).collect::<Vec<_>>();
        lines.retain(|line| line.contains("command") || line.contains("env"));
        let strip = |text: &str| text.chars().filter(|c| !c.is_whitespace() && *c != ',').collect::<String>();
        let is_back = lines.iter().all(|line| strip(&now).contains(&strip(line)));
        let is_back = is_back
            || (name == CURSOR
                && now.contains("git-server")
                && now.contains(TOKEN)
                && now.contains("\"db\""));
        table.row(format!("{name}: the servers are back"), ensure(is_back, &now));
        let imported =
            lockhouse.run(&["import", "--dry-run", "--from", lockhouse.path(name).to_str().unwrap()]);
        let again = imported.stdout.contains("imported");
        table.row(
            format!("{name}: the file can be read"),
            ensure(imported.status == Some(0) && again, &imported),
        );
    }
    let config = text(&lockhouse, "config/lockhouse/config.toml");
    let kept = config.contains("# mine\n[servers.later]")
        && !SERVERS.iter().any(|name| config.contains(&format!("servers.{name}]")));
    table.row("the configuration keeps only the later server", ensure(kept, &config));
    table.row("the secret is gone", equal(files(&lockhouse, "config/lockhouse/secrets"), Vec::new()));
    table.finish();
}

#[test]
fn undo_names_what_it_cannot_take_back_and_keeps_the_backup() {
    let lockhouse = home_with_clients();
    let mut table = Table::new("an undo with conflicts");
    table.row("setup", ok(&setup(&lockhouse, &["--yes", "--no-connect"])));
    lockhouse.file(GEMINI, "{\"ui\": {}, \"mcpServers\": {\"search\": {\"command\": \"mine\"}}}");
    lockhouse.file(CURSOR, "{ broken");
    let finished = setup(&lockhouse, &["--undo", "--yes"]);
    table.row(
        "the exit status",
        ensure(finished.status == Some(7) && !finished.transcript().contains(TOKEN), &finished),
    );
    table
        .row("a server of the same name stays", ensure(text(&lockhouse, GEMINI).contains("mine"), &finished));
    let named = finished.stdout.contains("another server search") && finished.stdout.contains(".before");
    table.row("it is named, with the backup", ensure(named, &finished));
    table.row("a broken file stays", equal(text(&lockhouse, CURSOR).as_str(), "{ broken"));
    table.row("another file is restored", equal(text(&lockhouse, CONTINUE).as_str(), FILES[5].1));
    let config = text(&lockhouse, "config/lockhouse/config.toml");
    table.row("Lockhouse keeps its servers meanwhile", ensure(config.contains("[servers.db]"), &config));
    lockhouse.file(CURSOR, "{}");
    let finished = setup(&lockhouse, &["--undo", "--yes"]);
    table.row("undo of the corrected file", ok(&finished));
    let now = text(&lockhouse, CURSOR);
    table.row("its servers are back", ensure(now.contains("git-server") && now.contains("\"db\""), &now));
    table.row(
        "then the configuration is removed",
        equal(text(&lockhouse, "config/lockhouse/config.toml").len(), 0),
    );
    table.finish();
}

#[test]
fn setup_changes_nothing_without_consent_and_keeps_servers_if_told_so() {
    let lockhouse = home_with_clients();
    let mut table = Table::new("setup without changes");
    let finished = setup(&lockhouse, &[]);
    let refused = finished.status == Some(2) && finished.stderr.contains("--yes");
    table.row("without a terminal", ensure(refused, &finished));
    let finished = setup(&lockhouse, &["--dry-run"]);
    table.row(
        "--dry-run",
        ok(&finished).and(ensure(finished.stdout.contains("moved out: github"), &finished)),
    );
    original_rows(&mut table, &lockhouse, "so far");
    table.row("nothing is written", equal(files(&lockhouse, "config/lockhouse"), Vec::new()));
    table.row("no journal is written", equal(files(&lockhouse, "state/lockhouse/setup"), Vec::new()));
    let finished = setup(&lockhouse, &["--keep", "--yes", "--no-connect"]);
    let now = text(&lockhouse, CLAUDE);
    table.row(
        "--keep leaves the servers",
        ok(&finished).and(ensure(now.contains("git-server") && now.contains("lockhouse"), &now)),
    );
    let warned = finished.stderr.contains("still contains plaintext secrets of server github: TOKEN");
    table.row("--keep warns about their secrets", ensure(warned, &finished));
    table.row("undo", ok(&setup(&lockhouse, &["--undo", "--yes"])));
    original_rows(&mut table, &lockhouse, "after undo");
    table.finish();
}

/// Runs `lockhouse setup --no-connect` on a terminal, with these lines as the input of the user.
fn setup_on_terminal(lockhouse: &Lockhouse, typed: &str) -> CommandOutput {
    CommandOutput::run(&mut on_terminal(&lockhouse.command(&["setup", "--no-connect"])), typed.as_bytes())
}

/// The questions are: which servers, whether those over HTTP+SSE (if any is chosen), whether they are moved, which AI clients, the mode, and whether this is written.
#[test]
fn an_invalid_answer_is_asked_again_and_the_end_of_the_input_changes_nothing() {
    let mut table = Table::new("answers of a person");
    let end = "\x04";
    let complete = ["github", "n", "cursor", "direct", "y"];
    for (index, invalid, words) in [
        (0, "githbu", "there is no server githbu here; did you mean github?"),
        (0, "all docs", "there is no server all here"),
        (1, "maybe", "answer y or n"),
        (1, "ja", "answer y or n"),
        (2, "cursr", "there is no AI client cursr here; did you mean cursor?"),
        (3, "drect", "answer code, direct or both"),
        (4, "maybe", "answer y or n"),
        (4, "", "answer y or n"),
    ] {
        let before: String = complete[..index].iter().map(|answer| format!("{answer}\n")).collect();
        let lockhouse = home_with_clients();
        let ended = setup_on_terminal(&lockhouse, &format!("{before}{invalid}\n{end}"));
        let is_told = ended.stdout.contains(words) && ended.stdout.contains("nothing was written");
        table.row(format!("{invalid:?}, then the end of the input"), ensure(is_told, &ended));
        original_rows(&mut table, &lockhouse, &format!("{invalid:?}"));
        table.row(format!("{invalid:?}: no file"), equal(files(&lockhouse, "config/lockhouse"), Vec::new()));
        let rest: String = complete[index..].iter().map(|answer| format!("{answer}\n")).collect();
        let corrected = setup_on_terminal(&lockhouse, &format!("{before}{invalid}\n{rest}"));
        let config = text(&lockhouse, "config/lockhouse/config.toml");
        let is_chosen = config.contains("[servers.github]") && !config.contains("[servers.docs]");
        table
            .row(format!("{invalid:?}, then a valid answer"), ok(&corrected).and(ensure(is_chosen, &config)));
        let client = text(&lockhouse, CURSOR);
        let is_kept = client.contains("git-server") && client.contains("\"direct\"");
        table.row(format!("{invalid:?}: the other answers count"), ensure(is_kept, &client));
    }
    for index in 0..complete.len() {
        let lockhouse = home_with_clients();
        let before: String = complete[..index].iter().map(|answer| format!("{answer}\n")).collect();
        let ended = setup_on_terminal(&lockhouse, &format!("{before}{end}"));
        table.row(
            format!("the end of the input at question {index}"),
            ensure(ended.stdout.contains("nothing was written"), &ended),
        );
        original_rows(&mut table, &lockhouse, &format!("question {index}"));
    }
    let lockhouse = home_with_clients();
    let defaults = setup_on_terminal(&lockhouse, "\n\n\n\n\ny\nn\n");
    let config = text(&lockhouse, "config/lockhouse/config.toml");
    let has_all = SERVERS.iter().all(|name| config.contains(&format!("[servers.{name}]")));
    table.row("control: the defaults", ok(&defaults).and(ensure(has_all, &config)));
    table.finish();
}

#[test]
fn a_server_over_sse_is_taken_over_after_a_confirmation_and_goes_back() {
    const ENTRY: &str = "[servers.old]\nurl = \"https://mcp.example.com/sse\"\ntransport = \"sse\"\n";
    let mut table = Table::new("a server over HTTP+SSE");
    for (how, is_taken) in [("--sse", true), ("y", true), ("n", false)] {
        let lockhouse = home_with_clients();
        let finished = match how {
            "--sse" => setup(&lockhouse, &["--yes", "--no-connect", "--sse"]),
            // It is the only one that is chosen.
            answer => setup_on_terminal(&lockhouse, &format!("old\n{answer}\n\n\n\ny\nn\n")),
        };
        table.row(how, ok(&finished));
        let config = text(&lockhouse, "config/lockhouse/config.toml");
        table.row(
            format!("{how}: the configuration"),
            ensure(config.contains(ENTRY) == is_taken, (&config, &finished)),
        );
        let stays = text(&lockhouse, CLAUDE).contains("\"old\"");
        table.row(format!("{how}: the client's file"), ensure(stays != is_taken, text(&lockhouse, CLAUDE)));
        let undone = setup(&lockhouse, &["--undo", "--yes"]);
        table.row(format!("{how}: undo"), ok(&undone));
        original_rows(&mut table, &lockhouse, how);
    }
    table.finish();
}

/// Creates a home directory with three servers in the file of Cursor: one that starts in the sandbox, one that reads a
/// private file when it starts, and one that does not exist. Returns the content of the file.
fn home_with_starting_servers(lockhouse: &Lockhouse) -> String {
    let program = lockhouse.path("home/.local/bin/fixture");
    lockhouse.file("home/.local/bin/README", "");
    std::fs::copy(fixture_server(), &program).unwrap();
    let private = lockhouse.file("home/private/notes.txt", "SEKRET");
    let script = format!("#!/bin/sh\ncat {private:?} > /dev/null || exit 1\nexec {program:?}\n");
    let script = lockhouse.file("home/server.sh", script);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let entry = format!(
        "{{\"mcpServers\": {{\"fixture\": {{\"command\": {program:?}}}, \"none\": {{\"command\": \"/no/such\"}}, \"reader\": {{\"command\": {script:?}}}}}}}"
    );
    lockhouse.file(CURSOR, &entry);
    entry
}

/// Returns the line about a server in the table of started servers.
fn started_row<'o>(finished: &'o CommandOutput, name: &str) -> &'o str {
    let mut rows = finished.stdout.lines().filter(|line| line.starts_with(&format!("{name} ")));
    rows.rfind(|line| !line.contains("stdio") && !line.contains(" cannot change ")).unwrap_or_default()
}

#[test]
fn setup_starts_the_servers_and_writes_a_first_policy_only_if_there_is_none() {
    let policy = "version = 1\n[servers.fixture]\nallow = [\"add\"]\n";
    let mut table = Table::new("the first start and the first policy");
    for has_policy in [false, true] {
        let lockhouse = if has_policy { Lockhouse::new().policy(policy) } else { Lockhouse::new() };
        let entry = home_with_starting_servers(&lockhouse);
        let finished = setup(&lockhouse, &["--yes"]);
        let title = if has_policy { "with a policy" } else { "without a policy" };
        let started = started_row(&finished, "fixture").contains(" ms");
        table.row(format!("{title}: a server that starts"), ok(&finished).and(ensure(started, &finished)));
        let failed = started_row(&finished, "none").contains("cannot start");
        table.row(format!("{title}: a server that does not"), ensure(failed, &finished));
        let now = text(&lockhouse, "config/lockhouse/policy.toml");
        if has_policy {
            table.row("the policy stays", equal(now.as_str(), policy));
        } else {
            let generated = now.contains("[servers.fixture]") && finished.stdout.contains("marked read-only");
            table.row("a policy is generated", ensure(generated && !now.contains("servers.none"), &now));
        }
        let host = finished.stdout.contains("sandbox level: ");
        table.row(format!("{title}: the host is checked"), ensure(host, &finished));
        table.row(format!("{title}: undo"), ok(&setup(&lockhouse, &["--undo", "--yes"])));
        let left = if has_policy { vec!["policy.toml".to_owned()] } else { Vec::new() };
        table.row(format!("{title}: what is left"), equal(files(&lockhouse, "config/lockhouse"), left));
        table.row(format!("{title}: the client's file"), equal(text(&lockhouse, CURSOR), entry.clone()));
    }
    table.finish();
}

#[test]
fn setup_keeps_the_sandbox_of_servers_that_list_their_tools_in_it() {
    let lockhouse = Lockhouse::new();
    home_with_starting_servers(&lockhouse);
    let mut table = Table::new("the proposed sandbox");
    let shown = setup(&lockhouse, &["--dry-run"]);
    let is_shown = shown.stdout.contains("no ~/.ssh") && shown.stdout.contains("fixture: ");
    table.row("it is shown first", ok(&shown).and(ensure(is_shown, &shown)));
    table.row("and no server is started", ensure(!shown.stdout.contains(" ms"), &shown));

    let finished = setup(&lockhouse, &["--yes"]);
    table.row("setup", ok(&finished));
    let config = text(&lockhouse, "config/lockhouse/config.toml");
    let table_of = |name: &str| {
        let after = config.split(&format!("[servers.{name}]")).nth(1).map(str::to_owned).unwrap_or_default();
        after.split("[servers.").next().unwrap_or_default().to_owned()
    };
    let profile = "sandbox = { profile = \"default\" }";
    let kept = table_of("fixture").contains(profile) && started_row(&finished, "fixture").contains(" yes");
    table.row("a server that lists its tools keeps it", ensure(kept, &config));
    let left_out = table_of("reader").contains("server.sh")
        && table_of("reader").contains("# no sandbox: it did not list its tools in it")
        && !table_of("reader").contains("\nsandbox");
    table.row("a server that does not runs without", ensure(left_out, &config));
    let private = lockhouse.path("home/private/notes.txt").display().to_string();
    let told = finished.stdout.contains(&format!("the server says that it was refused {private}"));
    let named = finished.stdout.contains("sandbox = { profile = \"default\", read =");
    table.row("the refusal and the setting are named", ensure(told && named, &finished));

    let client = text(&lockhouse, CURSOR);
    let left = client.contains("/no/such") && !client.contains("fixture") && !client.contains("server.sh");
    table.row("a server that does not start stays in the client's file", ensure(left, &client));
    table.row("and Lockhouse does not get it", ensure(!config.contains("servers.none"), &config));
    let told = finished.stdout.contains("not started: none.");
    table.row("which is said", ensure(told, &finished));
    let again = setup(&lockhouse, &["--undo", "--yes"]);
    table.row("undo", ok(&again));
    table.finish();
}

/// Such a server lists its tools, and only its calls would fail.
#[test]
fn setup_names_the_files_that_a_server_cannot_change_in_the_sandbox() {
    let lockhouse = Lockhouse::new();
    let program = lockhouse.path("home/.local/bin/fixture");
    lockhouse.file("home/.local/bin/README", "");
    std::fs::copy(fixture_server(), &program).unwrap();
    let script = lockhouse.file("home/servers/notes.sh", format!("#!/bin/sh\nexec {program:?}\n"));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let beside_keys = lockhouse.path("home/notes.json").display().to_string();
    let own_folder = lockhouse.file("home/notes/notes.json", "{}").display().to_string();
    let entry = |file: &str| serde_json::json!({"command": script, "args": [file]});
    let servers =
        serde_json::json!({"mcpServers": {"home": entry(&beside_keys), "folder": entry(&own_folder)}});
    lockhouse.file(CURSOR, servers.to_string());
    let finished = setup(&lockhouse, &["--yes"]);
    let mut table = Table::new("files that servers change");
    table.row("setup", ok(&finished));
    for (name, sandbox) in [("home", " yes, see below"), ("folder", " yes")] {
        let row = started_row(&finished, name);
        table.row(name, ensure(row.contains(sandbox) && row.contains("see below") == (name == "home"), row));
    }
    let lines: Vec<&str> =
        finished.stdout.lines().filter(|line| line.contains("in the sandbox, so calls")).collect();
    let expected =
        format!("home cannot change {beside_keys} in the sandbox, so calls that write it will fail. ");
    table.row("the file is named", ensure(lines.len() == 1 && lines[0].starts_with(&expected), &finished));
    table.finish();
}

/// A browser starts only with user namespaces, for its own sandbox.
#[test]
fn setup_proposes_user_namespaces_for_a_server_that_needs_them() {
    let can = std::process::Command::new("unshare").args(["--user", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        return;
    }
    let lockhouse = Lockhouse::new();
    let program = lockhouse.path("home/.local/bin/fixture");
    lockhouse.file("home/.local/bin/README", "");
    std::fs::copy(fixture_server(), &program).unwrap();
    let script = |name: &str, needs: &str| {
        let text = format!("#!/bin/sh\n{needs} || exit 1\nexec {program:?}\n");
        let path = lockhouse.file(&format!("home/servers/{name}.sh"), text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let entries = serde_json::json!({"mcpServers": {
        "browser": {"command": script("browser", "unshare --user true")},
        "plain": {"command": script("plain", "true")},
    }});
    lockhouse.file(CURSOR, entries.to_string());
    let finished = setup(&lockhouse, &["--yes"]);
    let config = text(&lockhouse, "config/lockhouse/config.toml");
    let mut table = Table::new("user namespaces in the proposed sandbox");
    table.row("setup", ok(&finished));
    let sandboxes: Vec<&str> = config.lines().filter(|line| line.starts_with("sandbox")).collect();
    let expected = [
        "sandbox = { profile = \"default\", user_namespaces = true }",
        "sandbox = { profile = \"default\" }",
    ];
    table.row("only the server that needs them gets them", equal(sandboxes, expected.to_vec()));
    let told = finished.stdout.contains("browser runs in the sandbox with user_namespaces = true");
    table.row("which is said", ensure(told, &finished));
    let tested = lockhouse.run(&["server", "test", "browser"]);
    table.row("it starts as it was configured", ensure(tested.status == Some(0), &tested));
    table.finish();
}

/// On a kernel that enforces a part of the sandbox, servers get it all the same, and what is missing is said.
#[test]
fn setup_says_what_a_kernel_does_not_enforce() {
    let mut table = Table::new("kernels without parts of the sandbox");
    for (lack, words) in [
        ("landlock", "this kernel has no Landlock"),
        ("landlock=2", "version 2 of Landlock"),
        ("landlock=4", "can send signals to other processes"),
        ("landlock=6", "no ~/.ssh"),
        ("namespaces", "no ~/.ssh"),
    ] {
        let lockhouse = Lockhouse::new();
        home_with_starting_servers(&lockhouse);
        let finished = run_without(&lockhouse, lack, &["setup", "--yes"]);
        table.row(format!("{lack}: {words}"), ensure(finished.stdout.contains(words), &finished));
        let config = text(&lockhouse, "config/lockhouse/config.toml");
        let is_right = config.contains("[servers.fixture]") && config.contains("profile");
        table.row(format!("{lack}: the server is taken over"), ensure(is_right, &config));
    }
    table.finish();
}

/// A change that was recorded but not made, as after a kill, is no obstacle for an undo. A file that cannot be changed
/// does not stop the others.
#[test]
fn an_interrupted_setup_can_be_taken_back() {
    let lockhouse = home_with_clients();
    lockhouse.file("home/.qwen/settings.json", "{ \"mcpServers\": { \"a\": \"SEKRET }\n");
    let mut table = Table::new("an interrupted setup");
    let finished = setup(&lockhouse, &["--yes", "--no-connect"]);
    table.row(
        "a file that is not valid is reported",
        ensure(finished.status == Some(2) && !finished.transcript().contains("SEKRET"), &finished),
    );
    for (name, before) in [FILES[0], FILES[5]] {
        lockhouse.file(name, before);
    }
    let finished = setup(&lockhouse, &["--undo", "--yes"]);
    table.row("undo", ok(&finished));
    original_rows(&mut table, &lockhouse, "after undo");
    table.row("Lockhouse's files are gone", equal(files(&lockhouse, "config/lockhouse"), Vec::new()));
    table.finish();
}

#[test]
fn the_journal_is_not_reached_through_a_symbolic_link() {
    let lockhouse = home_with_clients();
    let elsewhere = lockhouse.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::create_dir_all(lockhouse.path("state/lockhouse")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, lockhouse.path("state/lockhouse/setup")).unwrap();
    let mut table = Table::new("a journal that is a symbolic link");
    let finished = setup(&lockhouse, &["--yes", "--no-connect"]);
    table.row(
        "setup refuses",
        ensure(finished.status == Some(2) && finished.stderr.contains("setup"), &finished),
    );
    original_rows(&mut table, &lockhouse, "refused");
    table.row("nothing is written", equal(files(&lockhouse, "elsewhere"), Vec::new()));
    table.finish();
}
