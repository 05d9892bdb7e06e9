//! Tests of what `lockhouse status` and the logs say about an engine that is not the one that other clients share.

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal};
use serde_json::{Value, json};

use super::equality::{connect, own_format, with_server, with_variable};
use super::{add, engines, files, lockhouse, pid_of};

/// Returns what the status says about why the clients of a process have an engine of their own, as JSON and as text.
fn reason(lockhouse: &Lockhouse, pid: u32) -> (Value, String) {
    let engine = engines(lockhouse).into_iter().find(|engine| pid_of(engine) == pid).unwrap();
    let text = lockhouse.run(&["status"]).stdout;
    let of_process = text.split("\n\n").find(|text| text.contains(&format!("(process {pid})"))).unwrap();
    let line = of_process.lines().find_map(|line| line.strip_prefix("an engine of its own: "));
    (engine["own_engine"].clone(), line.unwrap_or_default().to_owned())
}

/// Returns the process of the engine that serves a client.
fn engine_of(lockhouse: &Lockhouse, client: &Session) -> u32 {
    let is_at = |engine: &Value| {
        let clients = engine["clients"].as_array();
        clients.is_some_and(|clients| clients.iter().any(|one| one["pid"] == client.pid()))
    };
    pid_of(&engines(lockhouse).into_iter().find(is_at).unwrap())
}

#[tokio::test]
async fn the_status_and_the_log_say_in_what_a_setup_differs() {
    let config = with_server("env = { TOKEN = \"${env:TOKEN}\" }\n");
    let lockhouse = own_format(&config.replace("idle_seconds = 2", "idle_seconds = 60"));
    let start = async |token: &str, zone: &str| {
        let mut command = with_variable(&lockhouse, "TOKEN", token);
        command.env("TZ", zone);
        let client = connect(command).await;
        assert_eq!(add(&client).await, json!(42));
        client
    };
    let first = start("SEKRET-1", "UTC").await;
    let one = engine_of(&lockhouse, &first);
    let second = start("SEKRET-2", "UTC").await;
    let two = engine_of(&lockhouse, &second);
    let third = start("SEKRET-1", "UTC+5").await;
    let three = engine_of(&lockhouse, &third);
    let mut table = Table::new("engines with different setups");
    let expected = |part: &str| {
        let reason = format!("its setup differs from that of process {one} in {part}");
        (Value::from(reason.as_str()), reason)
    };
    table.row("the engine that runs longest", equal(reason(&lockhouse, one), (Value::Null, String::new())));
    table.row("another secret of a server", equal(reason(&lockhouse, two), expected("the server fixture")));
    table.row("another variable", equal(reason(&lockhouse, three), expected("the variable TZ")));
    let log = std::fs::read_to_string(lockhouse.path("state/lockhouse/engine.log")).unwrap();
    for (from, part) in [(one, "the variable TZ"), (two, "the server fixture, the variable TZ")] {
        let line = format!(
            "another engine than that of process {from}: its setup differs from that of process {from} in {part}"
        );
        table.row(format!("the log of the third engine, {part}"), ensure(log.contains(&line), &log));
    }
    let texts = files(&lockhouse).into_iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let texts: String = texts.chain([log, lockhouse.run(&["status", "--json"]).stdout]).collect();
    let parts = texts.matches("the server fixture").count();
    table.row("no secret is written", ensure(parts >= 3 && !texts.contains("SEKRET"), &texts));
    table.finish();
}

#[tokio::test]
async fn the_status_says_why_a_process_does_not_use_the_shared_engine() {
    let mut table = Table::new("processes with an engine of their own");
    let no_service = lockhouse();
    // Without a valid key, no engine can be named.
    no_service.file("state/lockhouse/sharing.key", "short");
    let unshared = own_format(&with_server("share = false\n"));
    let cases: [(&str, Lockhouse, &[&str], &str); 4] = [
        ("by default", Lockhouse::with_fixture(), &["serve"], ""),
        ("--own", lockhouse(), &["serve", "--own"], "--own was given"),
        ("share = false", unshared, &["serve"], "the server fixture has share = false"),
        ("an error", no_service, &["serve"], "sharing.key has not 32 bytes: remove it"),
    ];
    for (case, lockhouse, arguments, expected) in cases {
        let client = connect(lockhouse.command(arguments)).await;
        assert_eq!(add(&client).await, json!(42));
        let (json, text) = reason(&lockhouse, client.pid());
        table.row(format!("{case}: the status"), equal(json.as_str().unwrap_or_default(), text.as_str()));
        table.row(format!("{case}: the reason"), ensure(text.ends_with(expected), &text));
        let log = client.log();
        let line = if expected.is_empty() { String::new() } else { format!("an engine of its own: {text}") };
        table.row(format!("{case}: the log"), ensure(log.contains(&line), &log));
        client.close().await;
        table.row(format!("{case}: no file is left"), equal(files(&lockhouse), Vec::new()));
    }
    table.finish();
}
