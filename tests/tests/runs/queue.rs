//! Tests of runs that wait in the queue for a worker.

use lockhouse_tests::{Session, Table, ensure, equal};
use serde_json::json;

use crate::runs::{ENDLESS, eras, lockhouse, session, start_in_background, start_with_worker};

#[tokio::test]
async fn a_full_queue_refuses_at_once_with_a_retry_time() {
    let mut table = Table::new("full queues");
    for (era, mode) in eras() {
        for (name, config) in [("in all", "queue = 2"), ("for one client", "queue_per_client = 2")] {
            let config = format!("[runs]\nwait_seconds = 0.2\n[pool]\nidle = 1\nrunning = 1\n{config}\n");
            let lockhouse = lockhouse(&config);
            let session = session(&lockhouse, mode.clone()).await;
            start_with_worker(&session, ENDLESS).await;
            for _ in 0..2 {
                start_in_background(&session, ENDLESS).await;
            }
            let mut row = |what: &str, outcome| table.row(format!("{era}, {name}: {what}"), outcome);
            let begun = std::time::Instant::now();
            let refused = session.run_code("python", "1").await;
            let error = &refused["error"];
            row("refused", equal(&error["type"], &json!("Busy")));
            row("at once", ensure(begun.elapsed().as_secs() < 5, &refused));
            let after = error["retry_after_s"].as_u64();
            row("when", ensure(after.is_some_and(|after| (1..=60).contains(&after)), error));
            let hint = error["hint"].as_str().is_some_and(|hint| hint.contains("retry_after_s"));
            row("what to do", ensure(hint, error));
            row("nothing was run", equal(&refused["calls"], &json!([])));
            let other = session.run_code("typescript", "1").await;
            row("control: the other language", ensure(other["error"].is_null(), &other));
        }
    }
    table.finish();
}

#[tokio::test]
async fn time_in_the_queue_does_not_count_towards_the_timeout() {
    let lockhouse = lockhouse("[pool]\nidle = 1\nrunning = 1\n[limits]\ntimeout_seconds = 2\n");
    let session = session(&lockhouse, Session::latest()).await;
    let code = "from mcp_tools.fixture import slow\nslow(ms=1200)['waited_ms']";
    let runs: Vec<_> = (0..4).map(|_| session.start_code("python", code)).collect();
    let mut table = Table::new("runs of 1.2 s one after the other, each of which may take 2 s");
    for (number, run) in runs.into_iter().enumerate() {
        let answer = lockhouse_tests::structured(run.await.unwrap());
        table.row(format!("number {number}"), equal(&answer["value"], &json!(1200)));
    }
    let late = session.run_code("python", &code.replace("1200", "5000")).await;
    table.row("control: one that takes longer", equal(&late["status"], &json!("timeout")));
    table.finish();
}
