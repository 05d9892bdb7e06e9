//! Tests of servers that do not answer a ping: a busy one keeps its calls and its memory, a hung one is restarted once the
//! calls in flight have used up their time.

use lockhouse_tests::{Session, Table, ensure, equal, structured, wait_until};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::{Scripted, processes};

const SHORT_ECHO: &str = "'echo', {'text': 'well'}, timeout=0.3";

/// Starts a call in a run of its own. Returns once the server has received it.
async fn start_call(scripted: &Scripted, session: &Session, call: &str) -> tokio::task::JoinHandle<Value> {
    let (code, before) = (Scripted::program(call), scripted.count("calls"));
    let run = session.start_code("python", &code);
    wait_until("the server has the call", async || (scripted.count("calls") > before).then_some(())).await;
    tokio::spawn(async move { structured(run.await.expect("a task"))["value"].clone() })
}

/// Calls the server until calls are refused because it has missed a ping. Returns the error.
async fn refusal(session: &Session) -> Value {
    wait_until("no call is sent to it", async || {
        let outcome = Scripted::outcome(session, SHORT_ECHO).await;
        (outcome[0] != "timeout").then_some(outcome)
    })
    .await
}

#[tokio::test]
async fn a_busy_server_keeps_its_calls_and_its_memory() {
    let scripted = Scripted::new("", &["--single"], &["echo", "wait"]);
    let session = scripted.lockhouse.serve().await;
    let long = start_call(&scripted, &session, "'wait', {}, timeout=120").await;
    let before = processes(&session);
    let mut table = Table::new("a server that handles one call at a time");
    let outcome = Scripted::outcome(&session, SHORT_ECHO).await;
    table.row("a call that waits for the long one", equal(&outcome[0], &json!("timeout")));
    let refused = refusal(&session).await;
    let told = refused[1].as_str().is_some_and(|told| told.contains("no call is sent to it until it does"));
    table.row("after a missed ping", ensure(refused[0] == "upstream_unavailable" && told, &refused));
    scripted.release();
    table.row("the long call", equal(long.await.expect("a run"), json!("released")));
    wait_until("it answers again", async || {
        (Scripted::outcome(&session, "'echo', {'text': 'well'}").await == "well").then_some(())
    })
    .await;
    table.row("one start", equal((scripted.count("starts"), processes(&session)), (1, before)));
    table.finish();
}

#[tokio::test]
async fn a_hung_server_is_restarted_once_its_calls_have_used_up_their_time() {
    let scripted = Scripted::new("", &[], &["echo", "never", "stop"]);
    let session = scripted.lockhouse.serve().await;
    let long = start_call(&scripted, &session, "'never', {}, timeout=14").await;
    let mut table = Table::new("a server that is stopped");
    let outcome = Scripted::outcome(&session, "'stop', {}, timeout=1").await;
    table.row("the call that stops it", equal(&outcome[0], &json!("timeout")));
    let refused = refusal(&session).await;
    table.row("after a missed ping", equal(&refused[0], &json!("upstream_unavailable")));
    table.row("the call that was in flight", equal(&long.await.expect("a run")[0], &json!("timeout")));
    wait_until("it is restarted", async || {
        (Scripted::outcome(&session, "'echo', {'text': 'well'}").await == "well").then_some(())
    })
    .await;
    table.row("starts", equal(scripted.count("starts"), 2));
    table.finish();
}

/// The second ping is sent once the first one has expired.
#[tokio::test]
async fn a_server_that_answers_calls_but_no_ping_is_used_on() {
    let scripted = Scripted::new("", &["--no-pong"], &["echo", "never"]);
    let session = scripted.lockhouse.serve().await;
    let mut answers = std::collections::BTreeSet::new();
    wait_until("the first ping has expired", async || {
        let outcome = Scripted::outcome(&session, "'never', {}, timeout=0.3").await;
        answers.insert(outcome[0].to_string());
        answers.insert(Scripted::outcome(&session, "'echo', {'text': 'well'}").await.to_string());
        (scripted.count("pings") > 1).then_some(())
    })
    .await;
    let expected = [json!("timeout"), json!("well")].map(|answer| answer.to_string());
    assert_eq!((answers.into_iter().collect::<Vec<_>>(), scripted.count("starts")), (expected.to_vec(), 1));
}
