//! Tests of `forward_within_seconds`: calls are refused while a destination is behind, and only then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockhouse_tests::{HttpAnswer, Session, wait_until};
use serde_json::{Value, json};

use super::{Collector, with_audit};
use crate::audit::{ADD, assert_verified};

async fn refusal(session: &Session) -> Option<String> {
    let answer: Value = session.run_code("python", ADD).await;
    answer["error"]["message"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn calls_are_refused_beyond_the_bound_and_go_on_after_the_delivery() {
    let is_away = Arc::new(AtomicBool::new(false));
    let away = is_away.clone();
    let collector = Collector::start(move |_| match away.load(Ordering::SeqCst) {
        true => HttpAnswer::status(503),
        false => HttpAnswer::json(200, &json!({})),
    });
    let destination = collector.destination();
    let lockhouse = with_audit(&format!("forward = [\"{destination}\"]\nforward_within_seconds = 10\n"));
    let session = lockhouse.serve().await;
    assert_eq!(refusal(&session).await, None, "control: it is there");
    is_away.store(true, Ordering::SeqCst);
    assert_eq!(refusal(&session).await, None, "within the bound");
    let refused = wait_until("calls are refused", async || refusal(&session).await).await;
    for words in ["the call was not made", &destination, "has not received records for", "503", "10 s"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    let code = session.run_code("python", "6 * 7").await;
    assert_eq!(code["value"], 42, "code without calls runs: {code}");
    let status = lockhouse.run(&["status"]).stdout;
    assert!(status.contains("not ready: no call is made") && status.contains(&destination), "{status}");
    let denials: Vec<Value> =
        lockhouse.records().into_iter().filter(|record| record["event"] == "denial").collect();
    assert!(!denials.is_empty(), "the refusal is recorded");
    let sent = |records: &[Value]| records.iter().filter(|record| record["event"] == "call").count();
    let before = sent(&lockhouse.records());
    assert!(refusal(&session).await.is_some());
    assert_eq!(sent(&lockhouse.records()), before, "no call was sent");
    is_away.store(false, Ordering::SeqCst);
    wait_until("calls are made again", async || refusal(&session).await.is_none().then_some(())).await;
    session.close().await;
    assert_eq!(collector.received.has_all(&lockhouse), Ok(()));
    assert_verified(&lockhouse);
}

#[tokio::test]
async fn records_of_an_earlier_process_are_delivered_before_the_first_call() {
    let collector = Collector::accepting();
    let lockhouse = with_audit("");
    let _ = lockhouse.answer("python", ADD);
    let before = lockhouse.records().len();
    // Older than the bound by now, and never delivered.
    wait_until("they are old", async || {
        let written = std::fs::metadata(&lockhouse.segments()[0]).unwrap().modified().unwrap();
        written.elapsed().is_ok_and(|age| age.as_secs() > 10).then_some(())
    })
    .await;
    let destination = collector.destination();
    let keys = format!("[audit]\nforward = [\"{destination}\"]\nforward_within_seconds = 10\n");
    lockhouse.file("config/lockhouse/config.toml", keys);
    let session = lockhouse.serve().await;
    assert_eq!(refusal(&session).await, None, "the call waits for the delivery");
    assert!(collector.received.len() >= before);
    session.close().await;
    assert_eq!(collector.received.has_all(&lockhouse), Ok(()));
}
