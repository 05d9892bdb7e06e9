//! Tests of `lockhouse server list` and `lockhouse server get`, which show the configured upstream servers.

use lockhouse_tests::Lockhouse;
use serde_json::{Value, json};

use crate::server_commands::{normalized_output, server};

fn several() -> Lockhouse {
    let lockhouse = Lockhouse::new().server("broken", &["--fail-start"]).server("fixture", &[]);
    lockhouse.server("old", &["--one-era"]).servers_entry("missing", json!({"command": "no-such-program"}))
}

#[test]
fn every_server_is_listed_with_its_state() {
    let lockhouse = several();
    let listed = server(&lockhouse, &["list"]);
    insta::assert_snapshot!("listed", normalized_output(&listed));
    let rows = server(&lockhouse, &["list", "--json"]).json();
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
    let keys: Vec<&String> = row("fixture").as_object().unwrap().keys().collect();
    let fields = [
        "name",
        "transport",
        "class",
        "sandbox",
        "origin",
        "state",
        "tools",
        "definitions_bytes",
        "era",
        "fell_back",
        "start_ms",
        "error",
    ];
    assert_eq!(keys, fields);
    let fixture = row("fixture");
    assert_eq!((&fixture["state"], &fixture["tools"]), (&json!("connected"), &json!(13)), "{fixture}");
    assert_eq!((&fixture["era"], &fixture["fell_back"]), (&json!("2026-07-28"), &json!(false)), "{fixture}");
    assert!(fixture["start_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{fixture}");
    assert_eq!((&row("old")["era"], &row("old")["fell_back"]), (&json!("2025-11-25"), &json!(true)));
    let broken = row("broken");
    assert_eq!((&broken["state"], &broken["era"]), (&json!("failed"), &Value::Null), "{broken}");
    assert!(broken["error"].as_str().is_some_and(|error| error.contains("told to fail")), "{broken}");
}

#[test]
fn no_connect_starts_no_server() {
    let mark = |lockhouse: &Lockhouse| lockhouse.path("started");
    let lockhouse = Lockhouse::new();
    let script = format!("touch {}; exit 1", mark(&lockhouse).display());
    let lockhouse = lockhouse.servers_entry("x", json!({"command": "sh", "args": ["-c", script]}));
    let rows = server(&lockhouse, &["list", "--no-connect", "--json"]).json();
    assert_eq!((&rows[0]["state"], &rows[0]["tools"]), (&json!("idle"), &Value::Null), "{rows}");
    assert_eq!(server(&lockhouse, &["get", "x", "--no-connect"]).status, Some(0));
    assert!(!mark(&lockhouse).exists());
    assert_eq!(server(&lockhouse, &["list"]).status, Some(0));
    assert!(mark(&lockhouse).exists(), "control");
}

#[test]
fn an_empty_list_explains_how_to_add_a_server() {
    insta::assert_snapshot!("listed_none", normalized_output(&server(&Lockhouse::new(), &["list"])));
    assert_eq!(server(&Lockhouse::new(), &["list", "--json"]).json(), json!([]));
}

#[test]
fn get_shows_a_server_in_full_without_its_secrets() {
    let lockhouse = Lockhouse::new().policy("version = 1\n[servers.fixture]\nallow = [\"add\"]\n");
    let program = lockhouse_tests::fixture_server();
    let (env, token) = ("MODE=CANARY-one", "TOKEN=CANARY-two");
    let added =
        server(&lockhouse, &["add", "fixture", "-e", env, "-e", token, "--", program.to_str().unwrap()]);
    assert_eq!(added.status, Some(0), "{added:?}");
    let shown = server(&lockhouse, &["get", "fixture"]);
    insta::assert_snapshot!("shown", normalized_output(&shown));
    let whole = server(&lockhouse, &["get", "fixture", "--json"]);
    let json = whole.json();
    assert_eq!((&json["permitted_tools"], &json["state"]), (&json!(["add"]), &json!("connected")), "{json}");
    assert_eq!(json["denied_tools"].as_array().map(Vec::len), Some(12), "{json}");
    assert_eq!(json["definition"]["env"]["MODE"], "***", "{json}");
    assert!(!format!("{shown:?}{whole:?}").contains("CANARY"));
}

#[test]
fn a_failed_server_is_shown_with_its_stderr() {
    let shown = server(&several(), &["get", "broken"]);
    assert!(shown.status == Some(0) && shown.stdout.contains("told to fail"), "{shown:?}");
    let refused = server(&several(), &["get", "fixtur"]);
    assert!(refused.status == Some(2) && refused.stderr.contains("did you mean fixture?"), "{refused:?}");
}

#[test]
fn unused_servers_are_listed_with_the_reason() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let lockhouse = lockhouse.servers_entry("off", json!({"command": "x", "disabled": true}));
    let lockhouse = lockhouse.servers_entry("strange", json!({"command": 3}));
    let listed = server(&lockhouse, &["list"]);
    insta::assert_snapshot!("listed_with_unused", normalized_output(&listed));
    for name in ["off", "strange"] {
        let refused = server(&lockhouse, &["get", name]);
        assert!(refused.status == Some(2) && refused.stderr.contains("is not used"), "{refused:?}");
    }
}
