//! Tests of `lockhouse server add`, which adds an upstream server to the configuration.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Lockhouse, Table, ensure, equal, fixture_server};

use crate::server_commands::{add_fixture, config, normalized_output, server, text};

/// A configuration file as a user would write it: with comments, and with its tables in an unusual order.
const HAND_WRITTEN: &str = "\
# what this is for

[limits] # of one execution
calls = 500   # few

# the first of all
[servers.first]
command = 'first' # by hand
[servers.first.env]
A = \"a\"

[pool]
idle = 1
";

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_added_server_works_at_once_and_all_its_tools_are_denied() {
    let lockhouse = Lockhouse::new();
    let program = fixture_server();
    let added = server(&lockhouse, &["add", "fixture", "--", program.to_str().unwrap()]);
    insta::assert_snapshot!("added", normalized_output(&added));
    assert_eq!(mode(&config(&lockhouse)), 0o600);
    let program = "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']";
    assert_eq!(lockhouse.answer("python", program)["error"]["code"], "denied");
    let lockhouse = lockhouse.policy("version = 1\n[servers.fixture]\nallow = [\"add\"]\n");
    assert_eq!(lockhouse.answer("python", program)["value"], 3, "control");
}

#[test]
fn a_hand_written_configuration_is_preserved() {
    let lockhouse = Lockhouse::new().config(HAND_WRITTEN);
    std::fs::set_permissions(config(&lockhouse), PermissionsExt::from_mode(0o640)).unwrap();
    let directory = lockhouse.path("home").display().to_string();
    let arguments = [
        "add",
        "--no-connect",
        "git",
        "-e",
        "LOG=debug",
        "--env-from",
        "LANG",
        "--cwd",
        &directory,
        "--",
        "npx",
        "-y",
        "pkg",
    ];
    let added = server(&lockhouse, &arguments);
    assert_eq!(added.status, Some(0), "{added:?}");
    let written = text(config(&lockhouse));
    insta::assert_snapshot!("config_with_a_new_server", written.replace(&directory, "[HOME]"));
    assert_eq!(mode(&config(&lockhouse)), 0o640, "the mode that it had");
    let rest: Vec<&str> = written.split("[servers.git]").collect();
    assert!(HAND_WRITTEN.starts_with(rest[0].trim_end()), "{written}");
    // Removing the server restores the original file.
    assert_eq!(server(&lockhouse, &["remove", "git"]).status, Some(0));
    assert_eq!(text(config(&lockhouse)), HAND_WRITTEN);
    let entries = std::fs::read_dir(lockhouse.path("config/lockhouse")).unwrap();
    assert_eq!(entries.count(), 1, "no draft is left");
}

#[test]
fn a_named_configuration_that_does_not_exist_is_created() {
    let lockhouse = Lockhouse::new();
    let named = lockhouse.path("project.toml");
    let added = lockhouse.run(&["server", "add", "x", "--config", named.to_str().unwrap(), "--", "y"]);
    assert_eq!(added.status, Some(0), "{added:?}");
    assert_eq!(
        (text(named.clone()), mode(&named)),
        ("[servers.x]\ncommand = \"y\"\nsandbox = { profile = \"default\" }\n".to_owned(), 0o600)
    );
    assert!(!config(&lockhouse).exists());
}

#[test]
fn a_symbolic_link_to_a_configuration_is_preserved() {
    let lockhouse = Lockhouse::new();
    let real = lockhouse.file("dotfiles/lockhouse.toml", HAND_WRITTEN);
    std::os::unix::fs::symlink(&real, config(&lockhouse)).unwrap();
    add_fixture(&lockhouse, "fixture", &[]);
    assert!(config(&lockhouse).is_symlink());
    assert!(text(real).contains("[servers.fixture]"));
}

#[test]
fn a_server_is_added_to_an_inline_table() {
    for written in ["servers = { first = { command = \"a\" } }\n", "servers.first.command = \"a\"\n", ""] {
        let lockhouse = Lockhouse::new().config(written);
        add_fixture(&lockhouse, "second", &["--legacy-only"]);
        let listed = server(&lockhouse, &["list", "--no-connect", "--json"]).json();
        let names: Vec<&str> =
            listed.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
        let expected = if written.is_empty() { vec!["second"] } else { vec!["first", "second"] };
        assert_eq!(names, expected, "{written}");
    }
}

#[test]
fn a_secret_is_stored_in_a_file_that_only_its_owner_can_read() {
    let lockhouse = Lockhouse::new();
    let added =
        server(&lockhouse, &["add", "git", "-e", "GITHUB_TOKEN=ghp_CANARY", "-e", "LOG=debug", "--", "x"]);
    insta::assert_snapshot!("added_with_a_secret", normalized_output(&added));
    let written = text(config(&lockhouse));
    assert!(!format!("{written}{added:?}").contains("CANARY"), "{written}{added:?}");
    assert!(written.contains("LOG = \"debug\""), "{written}");
    let secret = lockhouse.path("config/lockhouse/secrets/git.GITHUB_TOKEN");
    assert!(written.contains(&format!("GITHUB_TOKEN = \"${{file:{}}}\"", secret.display())), "{written}");
    assert_eq!((text(secret.clone()), mode(&secret)), ("ghp_CANARY".to_owned(), 0o600));
    assert_eq!(mode(secret.parent().unwrap()), 0o700);
    // A replaced server deletes the old secret.
    let replaced = server(&lockhouse, &["add", "git", "--force", "--", "x"]);
    assert!(replaced.status == Some(0) && !secret.exists(), "{replaced:?}");
    assert!(!text(config(&lockhouse)).contains("secrets"));
}

/// Every account of the host can read the arguments of `server add`, and those of a running server.
#[test]
fn a_secret_can_be_typed_and_an_argument_with_one_is_reported() {
    let could_see = "could see the secret in the arguments of this command";
    let mut table = Table::new("secrets that are no arguments");
    for (name, arguments, typed, file, value) in [
        (
            "a variable",
            &["add", "x", "--no-connect", "-e", "TOKEN", "--", "y"][..],
            "ghp_CANARY\n",
            "x.TOKEN",
            "ghp_CANARY",
        ),
        (
            "a variable that looks like none",
            &["add", "x", "--no-connect", "-e", "A", "--", "y"],
            "CANARY\n",
            "x.A",
            "CANARY",
        ),
        (
            "a header",
            &["add", "x", "--no-connect", "https://x.example/mcp", "-H", "Authorization"],
            "Bearer CANARY\n",
            "x.Authorization",
            "Bearer CANARY",
        ),
    ] {
        for on_a_terminal in [false, true] {
            let lockhouse = Lockhouse::new();
            let mut command = lockhouse.command(&[&["server"], arguments].concat());
            if on_a_terminal {
                command = lockhouse_tests::on_terminal(&command);
            }
            let added = lockhouse_tests::CommandOutput::run(&mut command, typed.as_bytes());
            let name = if on_a_terminal { format!("{name}, on a terminal") } else { name.to_owned() };
            // What is typed before the command has turned the echo off is shown by the terminal itself.
            let said = added.transcript().replacen(typed.trim_end(), "", usize::from(on_a_terminal));
            let is_silent = !said.contains("CANARY") && !said.contains(could_see);
            table.row(format!("{name}: added"), ensure(added.status == Some(0) && is_silent, &added));
            let stored = lockhouse.path("config/lockhouse/secrets").join(file);
            table.row(format!("{name}: stored"), equal(text(stored).as_str(), value));
            let config = text(config(&lockhouse));
            table.row(format!("{name}: a placeholder"), ensure(config.contains("${file:"), &config));
        }
    }
    let lockhouse = Lockhouse::new();
    let given = server(&lockhouse, &["add", "x", "--no-connect", "-e", "TOKEN=ghp_CANARY", "--", "y"]);
    table.row("control: as an argument", ensure(given.stderr.contains(could_see), &given));
    let none = server(&lockhouse, &["add", "z", "--no-connect", "-e", "TOKEN", "--", "y"]);
    table.row("no value", ensure(none.status == Some(2) && none.stderr.contains("cannot be read"), &none));
    for (arguments, is_reported) in [
        ("\"--key\", \"${file:secret}\"", true),
        ("\"--api-key=ghp_CANARY\"", true),
        ("\"--port\", \"${env:PORT:-80}\"", false),
    ] {
        let config = format!("[servers.x]\ncommand = \"y\"\nargs = [{arguments}]\n");
        let lockhouse = Lockhouse::new().config(&config);
        let secret = lockhouse.file("config/lockhouse/secret", "CANARY");
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        let checked = lockhouse.run(&["config", "check"]);
        let warned =
            checked.stderr.contains("server x (") && checked.stderr.contains("has a secret in its arguments");
        let is_right =
            checked.status == Some(0) && warned == is_reported && !checked.stderr.contains("CANARY");
        table.row(format!("config check: {arguments}"), ensure(is_right, &checked));
    }
    table.finish();
}

/// Checks that `server add` moves a secret to a file of its own, wherever in the server's arguments or URL it is.
/// Documentation of real servers has secrets at all these positions.
#[test]
fn a_secret_in_an_argument_or_url_is_stored_in_a_file() {
    let secret = "sk-CANARY0123456789";
    let option = format!("--api-key={secret}");
    let header = format!("Authorization: Bearer {secret}");
    let variable = format!("TOKEN={secret}");
    let url = format!("https://x.example/mcp?mode=fast&api_key={secret}");
    let rows: [(&str, &[&str], &str); 6] = [
        ("after an option", &["--", "x", "--api-key", secret, "-v"], "args = [\"--api-key\", \"${file:"),
        ("behind =", &["--", "x", &option], "args = [\"--api-key=${file:"),
        ("by its form", &["--", "x", secret], "args = [\"${file:"),
        ("a header", &["--", "npx", "mcp-remote", "--header", &header], "\"Authorization: ${file:"),
        ("a variable", &["--", "docker", "run", "-e", &variable], "\"TOKEN=${file:"),
        ("a URL", &[&url], "url = \"https://x.example/mcp?mode=fast&api_key=${file:"),
    ];
    let mut table = Table::new("secrets in command lines");
    for (name, line, written) in rows {
        let lockhouse = Lockhouse::new();
        let added = server(&lockhouse, &[&["add", "x"], line].concat());
        let config = text(config(&lockhouse));
        let moved = added.status == Some(0) && config.contains(written) && !config.contains("CANARY");
        table.row(name, ensure(moved && !added.transcript().contains("CANARY"), (&config, &added)));
        let told = added.stdout.contains("looks like a secret");
        let warned = added.stderr.contains("other users of this machine can see the server's arguments")
            == (name != "a URL");
        table.row(format!("{name}: it is told"), ensure(told && warned, &added));
        let secrets = std::fs::read_dir(lockhouse.path("config/lockhouse/secrets")).unwrap();
        let secrets: Vec<_> = secrets.map(|entry| entry.unwrap().path()).collect();
        table.row(
            format!("{name}: one file of one reader"),
            equal(secrets.len(), 1).and(equal(mode(&secrets[0]), 0o600)),
        );
        let shown = server(&lockhouse, &["get", "x", "--no-connect"]);
        table.row(
            format!("{name}: it is used"),
            ensure(shown.status == Some(0) && !shown.transcript().contains("CANARY"), &shown),
        );
        let removed = server(&lockhouse, &["remove", "x"]);
        table.row(
            format!("{name}: and goes with the server"),
            ensure(removed.status == Some(0) && !secrets[0].exists(), &removed),
        );
    }
    let lockhouse = Lockhouse::new();
    let added = server(
        &lockhouse,
        &["add", "x", "--", "npx", "-y", "@scope/pkg", "--mode=fast", "--token-file", "/run/x"],
    );
    let stays = text(config(&lockhouse))
        .contains("[\"-y\", \"@scope/pkg\", \"--mode=fast\", \"--token-file\", \"/run/x\"]");
    table.row("control: what is no secret stays", ensure(stays && added.status == Some(0), &added));
    table.finish();
}

/// Checks that an upstream server receives the original value of an argument that `server add` has stored in a file.
#[test]
fn an_argument_stored_in_a_file_reaches_the_server() {
    let lockhouse = Lockhouse::new();
    let script = "import sys; sys.stderr.write('%d characters' % len(sys.argv[2])); sys.exit(1)";
    // The interpreter may be in the home directory of another environment.
    let command = ["python3", "-c", script, "--token", "sk-0123456789"];
    let added = server(&lockhouse, &[&["add", "x", "--no-sandbox", "a test", "--"][..], &command].concat());
    assert_eq!(added.status, Some(0), "{added:?}");
    let tested = server(&lockhouse, &["test", "x"]);
    assert!(tested.transcript().contains("13 characters"), "{tested:?}");
}

#[test]
fn an_existing_server_is_replaced_only_with_force() {
    let lockhouse = Lockhouse::new();
    add_fixture(&lockhouse, "fixture", &[]);
    let refused = server(&lockhouse, &["add", "fixture", "--", "other"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--force") && refused.stderr.contains("server remove"), "{refused:?}");
    assert!(!text(config(&lockhouse)).contains("other"));
    assert_eq!(server(&lockhouse, &["add", "fixture", "--force", "--", "other"]).status, Some(0));
    assert!(text(config(&lockhouse)).contains("command = \"other\""));
    assert_eq!(text(config(&lockhouse)).matches("[servers.fixture]").count(), 1);
}

#[test]
fn a_name_in_a_servers_file_is_refused() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let refused = server(&lockhouse, &["add", "fixture", "--", "other"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("servers.json"), "{refused:?}");
    assert!(!config(&lockhouse).exists());
}

#[test]
fn an_invalid_configuration_is_reported_and_not_changed() {
    let lockhouse = Lockhouse::new().config("[limits]\ncals = 3\n");
    let refused = server(&lockhouse, &["add", "git", "--", "x"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("config.toml:2"), "{refused:?}");
    assert_eq!(text(config(&lockhouse)), "[limits]\ncals = 3\n");
}

#[test]
fn concurrent_additions_are_all_preserved() {
    let lockhouse = Lockhouse::new().config(HAND_WRITTEN);
    let names: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| assert_eq!(server(&lockhouse, &["add", name, "--", "x"]).status, Some(0)));
        }
    });
    let written = text(config(&lockhouse));
    assert!(names.iter().all(|name| written.contains(&format!("[servers.{name}]"))), "{written}");
}

#[test]
fn an_http_server_is_added_with_its_headers_stored() {
    let lockhouse = Lockhouse::new();
    // Options after the URL, as in the documentation of many servers.
    let line = [
        "add",
        "--transport",
        "http",
        "x",
        "https://x.example/mcp",
        "--header",
        "Authorization: Bearer CANARY",
    ];
    let added = server(&lockhouse, &line);
    let is_warned = added.stderr.lines().count() == 1 && added.stderr.contains("arguments of this command");
    assert!(added.status == Some(0) && is_warned, "{added:?}");
    let written = text(config(&lockhouse));
    assert!(written.contains("url = \"https://x.example/mcp\"") && !written.contains("CANARY"), "{written}");
    let secret = lockhouse.path("config/lockhouse/secrets/x.Authorization");
    assert_eq!(text(secret), "Bearer CANARY");
    let shown = server(&lockhouse, &["get", "x", "--no-connect", "--json"]);
    let header = shown.json()["definition"]["headers"]["Authorization"].as_str().unwrap().to_owned();
    assert!(header.starts_with("*** from ${file:") && !shown.stdout.contains("CANARY"), "{shown:?}");
    for (url, warned) in
        [("http://10.0.0.1/mcp", true), ("http://127.0.0.1:1/mcp", false), ("http://[::1]/mcp", false)]
    {
        let added = server(&lockhouse, &["add", "y", "--force", "-H", "A: b", url]);
        let is_warned = added.stderr.contains("without https");
        assert!(added.status == Some(0) && is_warned == warned, "{url}: {added:?}");
    }
}

#[test]
fn an_unusable_server_is_added_with_a_warning() {
    let lockhouse = Lockhouse::new();
    let added = server(&lockhouse, &["add", "x", "--env-from", "NOT_SET", "--", "y"]);
    assert!(added.status == Some(0) && added.stderr.contains("NOT_SET is not set"), "{added:?}");
    let listed = server(&lockhouse, &["list", "--no-connect", "--json"]).json();
    assert_eq!(listed[0]["state"], "left_out", "{listed}");
}

#[test]
fn a_name_that_is_ambiguous_in_code_is_refused() {
    let lockhouse = Lockhouse::new();
    add_fixture(&lockhouse, "a-b", &[]);
    let refused = server(&lockhouse, &["add", "a_b", "--", "y"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("server a-b already"), "{refused:?}");
}

#[test]
fn a_change_that_makes_the_configuration_invalid_is_not_written() {
    let lockhouse = Lockhouse::new().config(HAND_WRITTEN);
    let refused =
        server(&lockhouse, &["add", "x", "-e", "A=${what}", "-e", "TOKEN=ghp_0123456789", "--", "y"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("${env:NAME}"), "{refused:?}");
    assert!(!refused.stderr.contains("toml."), "the draft is not named: {refused:?}");
    assert_eq!(text(config(&lockhouse)), HAND_WRITTEN);
    let secrets = std::fs::read_dir(lockhouse.path("config/lockhouse/secrets")).unwrap();
    assert_eq!(secrets.count(), 0, "nothing is kept for it");
}

#[test]
fn mistakes_are_reported_with_the_correct_usage() {
    let rows: [(&str, &[&str], &[&str]); 24] = [
        ("no dashes", &["git", "npx", "-y", "pkg"], &["add NAME -- COMMAND"]),
        ("nothing", &["git"], &["give a command or a URL", "lockhouse server add git -- COMMAND"]),
        ("a URL and a command", &["x", "https://x.example/mcp", "--", "npx"], &["both", "npx"]),
        ("a URL and a word", &["x", "https://x.example/mcp", "npx"], &["both", "npx"]),
        ("a word before the dashes", &["x", "npx", "--", "y"], &["\"npx\"", "after --"]),
        (
            "-e without a value",
            &["x", "-e", "KEY", "--", "y"],
            &["value of KEY", "standard input: there is none"],
        ),
        ("-e without a name", &["x", "-e", "A-B", "--", "y"], &["-e KEY=VALUE", "--env-from"]),
        ("-e with a bad name", &["x", "-e", "A-B=c", "--", "y"], &["\"A-B\"", "letters"]),
        ("-e for a URL", &["x", "https://x.example/mcp", "-e", "A=b"], &["-e", "stdio"]),
        ("-H for a command", &["x", "-H", "A: b", "--", "y"], &["-H", "http"]),
        ("-H without a value", &["x", "-H", "SEKRET", "https://x.example/mcp"], &["value of header 1"]),
        ("-H without a name", &["x", "-H", "Bearer SEKRET", "https://x.example/mcp"], &["'Name: value'"]),
        ("-H with a token alone", &["x", "-H", "ghp_SEKRET", "https://x.example/mcp"], &["'Name: value'"]),
        ("-H with a space in its name", &["x", "-H", "A b: SEKRET", "https://x.example"], &["\"A b\""]),
        ("an sse URL", &["x", "https://x.example/sse"], &["deprecated", "/mcp", "--transport sse"]),
        (
            "an sse URL as http",
            &["x", "--transport", "http", "https://x.example/sse"],
            &["deprecated", "/mcp", "--transport sse"],
        ),
        ("sse without a URL", &["x", "--transport", "sse", "npx"], &["\"npx\"", "https://"]),
        ("http without a URL", &["x", "--transport", "http", "npx"], &["\"npx\"", "https://"]),
        ("stdio with a URL", &["x", "--transport", "stdio", "https://x.example/mcp"], &["omit --transport"]),
        (
            "an unknown transport",
            &["x", "--transport", "ws", "https://x.example"],
            &["\"ws\"", "stdio, http or sse"],
        ),
        ("another scheme", &["x", "wss://x.example/mcp"], &["wss://x.example/mcp", "https://"]),
        ("a bad name", &["a b", "--", "y"], &["\"a b\"", "A-Z"]),
        ("no such directory", &["x", "--cwd", "/nowhere", "--", "y"], &["--cwd"]),
        ("a scope", &["x", "--scope", "project", "--", "y"], &["--scope project", "--config"]),
    ];
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("mistakes in server add");
    for (name, arguments, words) in rows {
        let finished = server(&lockhouse, &[&["add"], arguments].concat());
        let told = words.iter().all(|words| finished.stderr.contains(words));
        let quiet = !finished.stderr.contains("SEKRET") && finished.stdout.is_empty();
        let refused = finished.status == Some(2) && !config(&lockhouse).exists();
        table.row(name, ensure(told && quiet && refused, finished));
    }
    let pasted =
        ["add", "--scope", "user", "--transport", "stdio", "x", "-e", "A=b", "--", "npx", "-y", "pkg"];
    let finished = server(&lockhouse, &pasted);
    table.row("control: a line of claude mcp add", ensure(finished.status == Some(0), finished));
    let pasted = ["add", "--no-connect", "--transport", "sse", "old", "https://x.example/sse"];
    let finished = server(&lockhouse, &pasted);
    let told = finished.stderr.contains("server old uses HTTP+SSE, which MCP has deprecated: ask its vendor");
    table.row(
        "control: sse by its option, with a warning",
        ensure(finished.status == Some(0) && told, &finished),
    );
    let written = std::fs::read_to_string(config(&lockhouse)).unwrap();
    let entry = "[servers.old]\nurl = \"https://x.example/sse\"\ntransport = \"sse\"\n";
    table.row("control: its table", ensure(written.contains(entry), written));
    table.finish();
}

/// A person takes the sandbox away with a reason, which the configuration and the audit log keep.
#[test]
fn a_new_server_has_a_sandbox_unless_a_person_gives_a_reason() {
    let lockhouse = Lockhouse::new();
    let add = |name: &str, options: &[&str]| {
        server(&lockhouse, &[&["add", name, "--no-connect"][..], options, &["--", "/bin/true"]].concat())
    };
    let mut table = Table::new("the sandbox of new servers");
    let told = add("first", &[]);
    let is_told = told.stdout.contains("--no-sandbox REASON") && told.stdout.contains("no ~/.ssh");
    table.row("it is said", ensure(told.status == Some(0) && is_told, &told));
    let given = add("second", &["--no-sandbox", "it drives Docker"]);
    table.row("a reason", ensure(given.status == Some(0), &given));
    let expected = "[servers.first]\ncommand = \"/bin/true\"\nsandbox = { profile = \"default\" }\n\n\
                    [servers.second]\n# no sandbox: it drives Docker\ncommand = \"/bin/true\"\n";
    table.row("the configuration", equal(text(config(&lockhouse)), expected.to_owned()));
    let records = lockhouse.records();
    let is_recorded = records
        .iter()
        .any(|record| record.to_string().contains("server add second without a sandbox: it drives Docker"));
    table.row("the audit log", ensure(is_recorded, &records));
    for (name, options) in [
        ("no reason", &["--no-sandbox", " "][..]),
        ("two lines", &["--no-sandbox", "a\nb = 1"]),
        ("both", &["--no-sandbox", "a", "--sandbox", "default"]),
    ] {
        let refused = add("third", options);
        table.row(name, ensure(refused.status == Some(2), &refused));
    }
    let over_http = server(&lockhouse, &["add", "x", "--no-sandbox", "a", "https://x.example/mcp"]);
    table.row(
        "over HTTP",
        ensure(over_http.stderr.contains("--no-sandbox only applies to stdio"), &over_http),
    );
    // In an inline table there is no place for a comment.
    let inline = Lockhouse::new().config("servers = { first = { command = \"a\" } }\n");
    let added = server(&inline, &["add", "x", "--no-connect", "--no-sandbox", "a", "--", "/bin/true"]);
    table.row("in an inline table", ensure(added.status == Some(0), &added));
    table.row(
        "it stays valid",
        ensure(inline.run(&["config", "check"]).status == Some(0), text(config(&inline))),
    );
    table.finish();
}
