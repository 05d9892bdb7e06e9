//! Tests that the audit sink forwards the log that it writes, and that engines depend on it as they do on their own forwarding.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_tests::{HttpAnswer, Lockhouse, Session, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use super::{Collector, adds};
use crate::audit::ADD;
use crate::audit::sink::{Sink, as_sink, log, segments, sink_key};

const FURTHER_REQUIREMENTS: &str = "LOCKHOUSE_REQUIREMENTS";

/// A collector that answers with status 503 while it is away.
fn collector() -> (Collector, Arc<AtomicBool>) {
    let is_away = Arc::new(AtomicBool::new(false));
    let away = is_away.clone();
    let collector = Collector::start(move |_| match away.load(Ordering::SeqCst) {
        true => HttpAnswer::status(503),
        false => HttpAnswer::json(200, &json!({})),
    });
    (collector, is_away)
}

/// Returns a test directory whose engines use the sink, with these further keys of `[audit]`.
fn with_sink(keys: &str) -> Lockhouse {
    let lockhouse = Lockhouse::with_fixture();
    let text = format!("[audit]\n{}{keys}", sink_key(&lockhouse));
    lockhouse.config(&text)
}

async fn refusal(session: &Session) -> Option<String> {
    let answer: Value = session.run_code("python", ADD).await;
    answer["error"]["message"].as_str().map(str::to_owned)
}

fn calls(lockhouse: &Lockhouse) -> usize {
    log(lockhouse).matches("\"event\":\"call\"").count()
}

#[tokio::test]
async fn the_sink_forwards_what_it_writes_also_after_it_was_killed() {
    let (collector, _) = collector();
    let lockhouse = with_sink(&format!("forward = [\"{}\"]\n", collector.destination()));
    let sink = Sink::start(&lockhouse).await;
    let session = lockhouse.serve().await;
    adds(&session, 3).await;
    let has_all = async || collector.received.has_all_of(&segments(&lockhouse)).ok();
    wait_until("everything arrives while the engine runs", has_all).await;
    sink.kill();
    assert!(refusal(&session).await.is_some(), "control: there is no sink");
    let sink = Sink::start(&lockhouse).await;
    wait_until("calls succeed again", async || refusal(&session).await.is_none().then_some(())).await;
    let mut table = Table::new("the log of the sink, at its destination");
    let report = as_sink(&lockhouse, &["audit", "forward"]);
    let is_told = report.stdout.contains(&collector.destination()) && report.stdout.contains("forwarded by");
    table.row("the account of the sink sees how far it is", ensure(is_told, &report));
    session.close().await;
    sink.stop();
    let received = collector.received.has_all_of(&segments(&lockhouse));
    table.row("everything arrived when the sink has ended", received);
    table.row("the engine has no log of its own", equal(lockhouse.segments().len(), 0));
    let verified = as_sink(&lockhouse, &["audit", "verify"]);
    table.row("the log verifies", ensure(verified.status == Some(0), &verified));
    table.finish();
}

#[tokio::test]
async fn the_sink_accepts_no_call_while_a_destination_is_behind() {
    let mut table = Table::new("calls while a destination of the sink is behind");
    // Whose configuration has the bound.
    for of_engine in [true, false] {
        let (collector, is_away) = collector();
        let forward = format!("forward = [\"{}\"]\n", collector.destination());
        let both = format!("{forward}forward_within_seconds = 10\n");
        let (engine, sink) = if of_engine { (both, forward) } else { (String::new(), both) };
        let lockhouse = with_sink(&engine);
        let own = lockhouse.file("sink.toml", format!("[audit]\n{sink}"));
        let _sink = Sink::start_with(&lockhouse, &["--config", own.to_str().unwrap()]).await;
        let session = lockhouse.serve().await;
        let name = if of_engine { "of the engine" } else { "of the sink" };
        table.row(format!("{name}: control, it is there"), equal(refusal(&session).await, None));
        is_away.store(true, Ordering::SeqCst);
        table.row(format!("{name}: within the bound"), equal(refusal(&session).await, None));
        let refused = wait_until("calls are refused", async || refusal(&session).await).await;
        for words in
            ["the call was not made: the audit sink", &collector.destination(), "has not received", "503"]
        {
            table.row(format!("{name}: {words}"), ensure(refused.contains(words), &refused));
        }
        let before = calls(&lockhouse);
        table.row(format!("{name}: the next one"), ensure(refusal(&session).await.is_some(), ()));
        table.row(format!("{name}: no record of a call was written"), equal(calls(&lockhouse), before));
        let denials = log(&lockhouse).contains("\"event\":\"denial\"");
        table.row(format!("{name}: the refusal is recorded"), ensure(denials, ()));
        table.row(format!("{name}: without a gap"), equal(log(&lockhouse).matches("\"gap\"").count(), 0));
        let code = session.run_code("python", "6 * 7").await;
        table.row(format!("{name}: code without calls runs"), equal(code["value"].clone(), 42.into()));
        let status = lockhouse.run(&["status"]).stdout;
        let is_told = status.contains("not ready: no call is made") && status.contains("the audit sink");
        table.row(format!("{name}: the status says so"), ensure(is_told, &status));
        is_away.store(false, Ordering::SeqCst);
        wait_until("calls are made again", async || refusal(&session).await.is_none().then_some(())).await;
        session.close().await;
        wait_until("everything arrives", async || collector.received.has_all_of(&segments(&lockhouse)).ok())
            .await;
    }
    table.finish();
}

#[tokio::test]
async fn a_destination_to_which_the_sink_does_not_forward_is_never_left_out_without_a_word() {
    let (collector, _) = collector();
    let destination = collector.destination();
    let forward = format!("forward = [\"{destination}\"]\n");
    let mut table = Table::new("destinations of engines with a sink");
    for (name, engine, sink, is_refused) in [
        ("control: neither has one", "", "", false),
        ("control: both have it", forward.as_str(), forward.as_str(), false),
        ("control: the sink has more", "", &forward, false),
        ("the sink has none", &forward, "", true),
        ("the sink has another one", &forward, "forward = [\"journald:/nowhere\"]\n", true),
    ] {
        let lockhouse = with_sink(engine);
        let own = lockhouse.file("sink.toml", format!("[audit]\n{sink}"));
        let _sink = Sink::start_with(&lockhouse, &["--config", own.to_str().unwrap()]).await;
        let answer = lockhouse.answer("python", ADD);
        let words = answer["error"]["message"].as_str().unwrap_or_default();
        let is_told = words.contains("does not forward the log to") && words.contains(&destination);
        let found = if is_refused { is_told } else { answer["value"] == 3 };
        table.row(name, ensure(found, &answer));
        table.row(format!("{name}: recorded"), equal(calls(&lockhouse), usize::from(!is_refused)));
    }
    table.finish();
}

/// One file of an administrator says that there is a sink, and where it forwards the log to.
#[tokio::test]
async fn the_sink_and_the_engines_obey_the_requirements() {
    let (collector, _) = collector();
    let lockhouse = Lockhouse::with_fixture();
    let keys = format!("{}forward = [\"{}\"]\n", sink_key(&lockhouse), collector.destination());
    let required = lockhouse.file("required.toml", format!("[audit]\n{keys}keep_days = 400\n"));
    let _sink = Sink::start_required(&lockhouse, &required).await;
    let mut command = lockhouse.command(&["serve"]);
    command.env(FURTHER_REQUIREMENTS, &required);
    let session = Session::connect(command, Session::latest()).await;
    adds(&session, 2).await;
    assert_eq!(calls(&lockhouse), 2, "the sink writes the log");
    wait_until("everything arrives", async || collector.received.has_all_of(&segments(&lockhouse)).ok())
        .await;
    session.close().await;
}
