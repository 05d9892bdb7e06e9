//! The log: for people and for programs, with the ids of the audit log, and nothing that words of others can forge.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::Value;

use crate::OPEN;

/// A server that cannot be started, whose reason has what a person was led to write into the configuration.
fn with_hostile_words() -> Lockhouse {
    let command = "/nowhere/a\n2026-01-01T00:00:00.000000Z ERROR lockhouse: FORGED\u{1b}[2J";
    Lockhouse::with_fixture().servers_entry("bad", serde_json::json!({"command": command}))
}

#[tokio::test]
async fn one_entry_cannot_look_like_two() {
    let lockhouse = with_hostile_words().config(OPEN);
    let door = lockhouse.door().await;
    let said = door.says("FORGED").await;
    let mut table = Table::new("a hostile string in the log");
    let forged = |line: &str| line.starts_with("2026-01-01");
    table.row("as text: no line of its own", ensure(!said.lines().any(forged), &said));
    table.row("as text: nothing that steers a terminal", ensure(!said.contains('\u{1b}'), &said));
    drop(door);

    let lockhouse = with_hostile_words().config(&format!("{OPEN}[log]\nformat = \"json\"\n"));
    let door = lockhouse.door().await;
    let said = door.says("FORGED").await;
    for line in said.lines() {
        let parsed: Result<Value, _> = serde_json::from_str(line);
        let is_entry =
            parsed.as_ref().is_ok_and(|entry| entry["level"].is_string() && entry["message"].is_string());
        table.row(format!("as JSON: {}", line.chars().take(60).collect::<String>()), ensure(is_entry, line));
    }
    table.finish();
}

#[tokio::test]
async fn lines_of_an_execution_have_its_id_as_the_audit_log_has_it() {
    for format in ["text", "json"] {
        let lockhouse = Lockhouse::with_fixture().config(&format!("{OPEN}[log]\nformat = \"{format}\"\n"));
        let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("LOCKHOUSE_LOG", "lockhouse=debug");
        let door = lockhouse_tests::Door::open(command).await;
        let answer = door.visitor(None).run_code("python", "1").await;
        let execution = answer["execution"].as_str().unwrap();
        let said = door.says("a run ended").await;
        let line = said.lines().find(|line| line.contains("a run ended")).unwrap();
        assert!(line.contains(execution) && line.contains("lockhouse-tests"), "{format}: {line}");
        let records = lockhouse.records();
        let record = records.iter().find(|record| record["event"] == "execution").unwrap();
        equal(record["execution"].as_str(), Some(execution)).unwrap();
    }
}

#[tokio::test]
async fn without_a_journal_it_goes_to_standard_error() {
    // There is one where systemd is; elsewhere the log says that there is none.
    if std::path::Path::new("/run/systemd/journal/socket").exists() {
        return;
    }
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[log]\nformat = \"journald\"\n"));
    let door = lockhouse.door().await;
    door.says("there is no journal to log to").await;
}
