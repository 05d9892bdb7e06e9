//! Tests of the records of starts and ends, and of who ended what.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, structured, wait_until};
use serde_json::{Value, json};

use super::Acts;
use crate::audit::{ADD, assert_verified};

#[tokio::test(flavor = "multi_thread")]
async fn starts_and_ends_of_processes_and_servers_are_recorded() {
    let lockhouse = Lockhouse::with_fixture();
    let mut acts = Acts::new(&lockhouse);
    let session = lockhouse.serve().await;
    assert_eq!(session.run_code("python", ADD).await["value"], 3);
    let of = ["event", "command", "server", "outcome"];
    let mut table = Table::new("processes and servers");
    let started =
        vec![json!(["process", "serve", null, "started"]), json!(["server", null, "fixture", "started"])];
    let records = acts.next();
    let summary = |records: &[Value]| -> Vec<Value> {
        records.iter().map(|record| of.iter().map(|name| record[*name].clone()).collect()).collect()
    };
    table.row("the start", equal(summary(&records), started));
    table.row(
        "with the digests in force",
        ensure(records[0]["policy"].as_str().is_some_and(|digest| digest.len() == 64), &records[0]),
    );
    let mut server = lockhouse_tests::children(session.pid()).into_iter();
    let server = server.find(|child| child.command.contains("fixture-server")).unwrap();
    lockhouse_tests::kill(server.pid);
    let lost = wait_until("the loss is recorded", async || {
        lockhouse.records().into_iter().find(|record| record["outcome"] == "lost")
    })
    .await;
    table.row("a server that was killed", ensure(lost["reason"].is_string(), &lost));
    assert_eq!(session.run_code("python", ADD).await["value"], 3, "it is started again");
    acts.next();
    assert_eq!(session.close().await.status, Some(0));
    let ends = acts.next();
    let stopped = ends.iter().find(|record| record["event"] == "server").cloned().unwrap_or_default();
    table.row("the server's end", equal(stopped["outcome"].clone(), json!("stopped")));
    let process = ends.iter().find(|record| record["event"] == "process").cloned().unwrap_or_default();
    let expected = json!(["stopped", "its AI client has disconnected"]);
    table.row("the process's end", equal(json!([process["outcome"], process["reason"]]), expected));
    let run = lockhouse.answer("python", ADD);
    table.row("control: `run` has none", ensure(run["value"] == 3 && acts.next().is_empty(), run));
    table.finish();
    assert_verified(&lockhouse);
}

async fn ended_by(lockhouse: &Lockhouse, execution: &Value) -> Value {
    let record = wait_until("the run has ended", async || {
        let mut records = lockhouse.records().into_iter();
        records.find(|record| record["event"] == "end" && record["execution"] == *execution)
    });
    record.await["ended_by"].clone()
}

/// Starts a run that does not end, and returns its execution id.
pub(super) async fn endless(
    lockhouse: &Lockhouse,
    session: &Session,
) -> (Value, tokio::task::JoinHandle<Value>) {
    let before: BTreeSet<String> = executions(lockhouse);
    let running = session.start_code("python", "while True: pass");
    let execution = wait_until("the run has begun", async || {
        executions(lockhouse).into_iter().find(|execution| !before.contains(execution))
    })
    .await;
    let answer = async move { running.await.unwrap().map_or(Value::Null, |answer| structured(Ok(answer))) };
    (execution.into(), tokio::spawn(answer))
}

fn executions(lockhouse: &Lockhouse) -> BTreeSet<String> {
    let records = lockhouse.records().into_iter().filter(|record| record["event"] == "execution");
    records.filter_map(|record| record["execution"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_ended_a_run_or_a_session_is_recorded() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let uid = std::fs::metadata(lockhouse.path("home")).unwrap().uid();
    let mut table = Table::new("who ended a run");
    // The start of the server has a record too, which must come before those of the acts.
    let code = "from mcp_tools.fixture import add\nadd(a=1, b=1)";
    let by_itself = session.run_code("python", code).await["execution"].clone();
    table.row("control: its program", equal(ended_by(&lockhouse, &by_itself).await, Value::Null));
    let mut acts = Acts::new(&lockhouse);
    let late = session
        .run_with(json!({"language": "python", "code": "while True: pass", "timeout_s": 1}))
        .await["execution"]
        .clone();
    table.row("its deadline", equal(ended_by(&lockhouse, &late).await, json!("deadline")));
    let (execution, running) = endless(&lockhouse, &session).await;
    let ended = lockhouse.run(&["runs", "end", execution.as_str().unwrap()]);
    assert_eq!(running.await.unwrap()["status"], "cancelled", "{ended:?}");
    table.row("an operator", equal(ended_by(&lockhouse, &execution).await, json!("operator")));
    let of = ["event", "target", "execution", "session", "through", "uid", "severity"];
    let expected = vec![json!(["termination", "run", execution, null, "operator", uid, "warning"])];
    table.row("with the user", equal(acts.summaries(&of), expected));
    session.run_in("notes", "python", "x = 1").await;
    assert_eq!(lockhouse.run(&["sessions", "end", "notes"]).status, Some(0));
    let expected = vec![json!(["termination", "session", null, "notes", "operator", uid, "warning"])];
    table.row("a session", equal(acts.summaries(&of), expected));
    let (execution, running) = endless(&lockhouse, &session).await;
    session.close().await;
    drop(running);
    table.row("its client, which is gone", {
        let ended = ended_by(&lockhouse, &execution).await;
        ensure(ended == "client" || ended == "shutdown", ended)
    });
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn lockhouse_stop_ends_runs_with_its_reason_and_is_recorded() {
    let lockhouse = Lockhouse::with_fixture();
    let mut table = Table::new("lockhouse stop");
    let none = lockhouse.run(&["stop"]);
    table.row(
        "control: nothing runs",
        ensure(none.status == Some(7) && none.stdout.contains("No Lockhouse"), &none),
    );
    let session = lockhouse.serve().await;
    let other = lockhouse.run(&["stop", "--pid", "1"]);
    table.row("control: another process", ensure(other.status == Some(7), &other));
    assert_eq!(session.run_code("python", "1").await["value"], 1, "it still runs");
    let (execution, running) = endless(&lockhouse, &session).await;
    let stopped = lockhouse.run(&["stop", "--reason", "a fire drill"]);
    table.row("it succeeds", ensure(stopped.status == Some(0), &stopped));
    let answer = running.await.unwrap();
    let error = answer["error"]["message"].as_str().unwrap_or_default();
    table.row(
        "the run reads why",
        ensure(error.contains("a person stopped Lockhouse: a fire drill"), &answer),
    );
    table.row("and who", equal(ended_by(&lockhouse, &execution).await, json!("operator")));
    assert_eq!(session.close().await.status, Some(0));
    let records = lockhouse.records();
    let of =
        |event: &str| records.iter().rfind(|record| record["event"] == event).cloned().unwrap_or_default();
    let termination = of("termination");
    let expected = json!(["process", "operator", "a fire drill"]);
    let found = json!([termination["target"], termination["through"], termination["reason"]]);
    table.row("its record", equal(found, expected));
    let reason = of("process")["reason"].as_str().unwrap_or_default().to_owned();
    table.row("the end of the process", ensure(reason.contains("a fire drill"), reason));
    table.finish();
    assert_verified(&lockhouse);
}
