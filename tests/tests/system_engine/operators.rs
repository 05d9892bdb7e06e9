//! Tests of who operates the engine of the system: the person within limits, and root.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use lockhouse_tests::{CommandOutput, Table, ensure, equal};
use serde_json::{Value, json};

use super::host::{Host, OTHER_PERSON, PERSON, can_manage};

const POLICY: &str = "version = 1\n[servers.fixture]\nask = [\"echo\"]\n";
const ROOT: u32 = 0;

/// Runs a command for at most the time in which an engine answers.
fn run(command: &mut Command) -> CommandOutput {
    CommandOutput::run(command, b"")
}

/// Returns the first line that a command prints which would run for ever.
fn first_line(mut command: Command) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_operates_the_engine_and_root_approves() {
    if !can_manage() {
        return;
    }
    let host = Host::managed(POLICY).await;
    let client = host.client().await;
    assert_eq!(client.run_code("python", "1+1").await["value"], 2);
    let mut table = Table::new("who operates the engine of a person");
    for (account, engines) in [(PERSON, 1), (ROOT, 1), (OTHER_PERSON, 0)] {
        let status = run(&mut host.lockhouse_as(account, &["status", "--json"]));
        let listed: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
        let count = listed.as_array().or(listed["processes"].as_array()).map_or(0, Vec::len);
        table.row(
            format!("{account}: status"),
            equal(count, engines).map_err(|why| format!("{why} {status:?}")),
        );
    }
    let checked = run(&mut host.lockhouse_as(PERSON, &["config", "check"]));
    let is_told = checked.stderr.contains("yours have no effect on it");
    table.row("the person is told whose configuration is in force", ensure(is_told, &checked));
    let reload = run(&mut host.lockhouse_as(PERSON, &["reload"]));
    table.row("the person reloads it", ensure(reload.status == Some(0), &reload));
    let told = first_line(host.lockhouse_as(PERSON, &["approvals", "--json"]));
    let is_told = told.contains("an administrator answers there");
    table.row("the person is told who approves", ensure(is_told, &told));

    let mut command = host.lockhouse_as(ROOT, &["approvals", "--json"]);
    let mut approver = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut answers, questions) = (approver.stdin.take().unwrap(), approver.stdout.take().unwrap());
    let answering = std::thread::spawn(move || {
        for line in BufReader::new(questions).lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let Some(question) = message.get("ask") else { continue };
            let answer = json!({"id": question["id"], "digest": question["digest"], "decision": "approve", "scope": "once"});
            writeln!(answers, "{}", json!({"supervisor": message["supervisor"], "answer": answer})).unwrap();
            break;
        }
        // The command ends with its standard input.
        answers
    });
    let approved = client.run_code("python", "from fixture import echo\necho(value=7)['value']").await;
    table.row(
        "root approves a call",
        equal(approved["value"].clone(), json!(7)).map_err(|why| format!("{why} {approved}")),
    );
    let _ = approver.kill();
    let _ = approver.wait();
    let _ = answering.join();
    table.finish();
}
