//! Tests of the daemon's log in its text and JSON formats: its entries have the same execution ids as the audit log,
//! and no input can forge an entry.

use lockhouse_tests::{Daemon, HttpClient, Lockhouse, Table, ensure, equal};
use serde_json::Value;

use crate::telemetry::OPEN;

/// Returns a Lockhouse test fixture with an upstream server that cannot be started. The error about it quotes a
/// configured command that imitates a log entry.
fn with_hostile_words() -> Lockhouse {
    let command = "/nowhere/a\n2026-01-01T00:00:00.000000Z ERROR lockhouse: FORGED\u{1b}[2J";
    Lockhouse::with_fixture().servers_entry("bad", serde_json::json!({"command": command}))
}

#[tokio::test]
async fn a_hostile_string_cannot_forge_a_log_entry() {
    let lockhouse = with_hostile_words().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let said = daemon.wait_for_log("FORGED").await;
    let mut table = Table::new("a hostile string in the log");
    let forged = |line: &str| line.starts_with("2026-01-01");
    table.row("as text: no line of its own", ensure(!said.lines().any(forged), &said));
    table.row("as text: nothing that steers a terminal", ensure(!said.contains('\u{1b}'), &said));
    drop(daemon);

    let lockhouse = with_hostile_words().config(&format!("{OPEN}[log]\nformat = \"json\"\n"));
    let daemon = lockhouse.daemon().await;
    let said = daemon.wait_for_log("FORGED").await;
    for line in said.lines() {
        let parsed: Result<Value, _> = serde_json::from_str(line);
        let is_entry =
            parsed.as_ref().is_ok_and(|entry| entry["level"].is_string() && entry["message"].is_string());
        table.row(format!("as JSON: {}", line.chars().take(60).collect::<String>()), ensure(is_entry, line));
    }
    table.finish();
}

#[tokio::test]
async fn log_lines_have_the_execution_id_of_the_audit_log() {
    for format in ["text", "json"] {
        let lockhouse = Lockhouse::with_fixture().config(&format!("{OPEN}[log]\nformat = \"{format}\"\n"));
        let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("LOCKHOUSE_LOG", "lockhouse=debug");
        let daemon = Daemon::open(command).await;
        // In JSON the log line with the address continues after the address.
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let http_client = HttpClient::with_client(client, &format!("http://{}/mcp", daemon.address()), None);
        let answer = http_client.run_code("python", "1").await;
        let execution = answer["execution"].as_str().unwrap();
        let said = daemon.wait_for_log("a run ended").await;
        let line = said.lines().find(|line| line.contains("a run ended")).unwrap();
        assert!(line.contains(execution) && line.contains("lockhouse-tests"), "{format}: {line}");
        let records = lockhouse.records();
        let record = records.iter().find(|record| record["event"] == "execution").unwrap();
        equal(record["execution"].as_str(), Some(execution)).unwrap();
    }
}

#[tokio::test]
async fn without_a_journal_the_log_goes_to_stderr() {
    // This test needs a machine without systemd's journal; there the log reports its absence.
    if std::path::Path::new("/run/systemd/journal/socket").exists() {
        return;
    }
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[log]\nformat = \"journald\"\n"));
    let daemon = lockhouse.daemon().await;
    daemon.wait_for_log("there is no journal to log to").await;
}
