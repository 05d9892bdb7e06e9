//! Tests of `lockhouse server test`, which checks whether an upstream server works.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{HttpAnswer, HttpServer, Lockhouse, Table, ensure};
use serde_json::{Value, json};

use crate::server_commands::{normalized_output, server};

fn steps(tried: &Value) -> Vec<(&str, bool)> {
    let step = |step: &'_ Value| (step["step"].as_str().unwrap().to_owned(), step["ok"].as_bool().unwrap());
    let steps = tried["steps"].as_array().unwrap().iter().map(step);
    steps.map(|(name, ok)| (&*name.leak(), ok)).collect()
}

#[test]
fn a_working_server_passes_every_step() {
    let lockhouse = Lockhouse::with_fixture();
    insta::assert_snapshot!("tried", normalized_output(&server(&lockhouse, &["test", "fixture"])));
    let tried = server(&lockhouse, &["test", "fixture", "--json"]);
    let expected = ["program", "start", "handshake", "tools", "ping", "stop"].map(|step| (step, true));
    assert_eq!((steps(&tried.json()), tried.status), (expected.to_vec(), Some(0)), "{tried:?}");
}

#[test]
fn an_http_server_has_no_process_that_starts_and_stops() {
    let web = HttpServer::start(|request| request.as_mcp(false).unwrap_or_else(|| HttpAnswer::status(500)));
    let config = format!("[servers.web]\nurl = \"{}\"\n", web.url("/mcp"));
    let tried = server(&Lockhouse::new().config(&config), &["test", "web", "--json"]);
    let json = tried.json();
    let names: Vec<&str> = steps(&json).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["address", "handshake", "tools", "ping"], "{tried:?}");
}

#[test]
fn a_call_is_sent_only_if_the_policy_permits_it() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let lockhouse = lockhouse.policy("version = 1\n[servers.fixture]\nallow = [\"add\"]\n");
    let call = |tool: &str, arguments: &str| {
        server(&lockhouse, &["test", "fixture", "--call", tool, "--arguments", arguments, "--json"])
    };
    let step = |tried: &Value| {
        tried["steps"].as_array().unwrap().iter().find(|step| step["step"] == "call").cloned()
    };
    let permitted = call("add", "{\"a\": 1, \"b\": 2}");
    let made = step(&permitted.json()).unwrap();
    assert!(permitted.status == Some(0) && made["found"].as_str().unwrap().contains('3'), "{made}");
    let denied = call("delete_everything", "{}");
    let found = step(&denied.json()).unwrap();
    assert!(denied.status == Some(7) && found["found"].as_str().unwrap().starts_with("denied"), "{found}");
    let outcomes: Vec<Value> = lockhouse.audit().iter().map(|record| record["event"].clone()).collect();
    assert_eq!(outcomes, [json!("call"), json!("outcome"), json!("denial")]);
    let mistaken = call("add", "[1]");
    assert!(mistaken.status == Some(2) && mistaken.stderr.contains("--arguments"), "{mistaken:?}");
}

#[test]
fn a_failed_step_is_reported_with_the_servers_stderr_and_help() {
    let scripts = Lockhouse::new();
    let script = |name: &str, text: &str| {
        let path = scripts.file(name, text);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let orphan = script("orphan", "#!/no/such/python -u\n");
    let windows = script("windows", "#!/bin/sh\r\nexit\r\n");
    let rows: [(&str, Value, &str, &[&str]); 9] = [
        ("no program", json!({"command": "no-such-program"}), "program", &["PATH", "servers.json"]),
        ("no file", json!({"command": "/no/such/file"}), "program", &["/no/such/file"]),
        ("no directory", json!({"command": "sh", "cwd": "/nowhere"}), "program", &["/nowhere", "cwd"]),
        ("no interpreter", json!({"command": orphan}), "program", &["the interpreter", "/no/such/python"]),
        ("lines of Windows", json!({"command": windows}), "program", &["carriage return", "sed -i"]),
        (
            "arguments in it",
            json!({"command": "npx-x -y @x/y"}),
            "program",
            &["is the program alone", "npx-x"],
        ),
        (
            "it ends",
            json!({"command": "sh", "args": ["-c", "echo no API key given >&2; exit 3"]}),
            "handshake",
            &["exit status: 3", "no API key given"],
        ),
        (
            "it prints first, and ends",
            json!({"command": "sh", "args": ["-c", "echo Welcome!"]}),
            "handshake",
            &["ended before it was ready"],
        ),
        (
            "it says its secret",
            json!({"command": "sh", "args": ["-c", "echo bad $TOKEN >&2; exit 3"], "env": {"TOKEN": "SEKRET-x"}}),
            "handshake",
            &["[redacted TOKEN]"],
        ),
    ];
    let mut table = Table::new("servers that do not work");
    for (name, entry, failed, words) in rows {
        let lockhouse = Lockhouse::new().servers_entry("x", entry);
        let tried = server(&lockhouse, &["test", "x", "--json"]);
        let json = tried.json();
        let last = steps(&json).into_iter().find(|(_, ok)| !ok).map(|(step, _)| step.to_owned());
        let told = words.iter().all(|words| tried.stdout.contains(words)) && !tried.stdout.contains("SEKRET");
        let advised = failed == "program" || json["hint"].is_string();
        let holds = last.as_deref() == Some(failed) && told && advised && tried.status == Some(7);
        table.row(name, ensure(holds, &tried));
    }
    table.finish();
    let lockhouse = Lockhouse::new().server("broken", &["--fail-start"]);
    insta::assert_snapshot!("tried_in_vain", normalized_output(&server(&lockhouse, &["test", "broken"])));
}

#[test]
fn a_server_that_must_be_killed_is_reported() {
    let fixture = lockhouse_tests::fixture_server();
    // Only the shell has the trap. It continues after its input has ended.
    let script = format!("trap '' TERM; {}; sleep 7777", fixture.display());
    let lockhouse = Lockhouse::new().servers_entry("x", json!({"command": "sh", "args": ["-c", script]}));
    let tried = server(&lockhouse, &["test", "x"]);
    assert!(tried.status == Some(0) && tried.stdout.contains("was killed"), "{tried:?}");
}
