//! Tests of runs that an AI client cancels, and of AI clients that disconnect during a run.

use lockhouse_tests::{Session, Table, ensure, equal, wait_until};
use serde_json::json;

use crate::runs::{
    ENDLESS, eras, lockhouse, outcome, python, result, run, session, slow_calls, start_cancellable,
    start_in_background, start_with_worker, wait_for_cancelled_calls, wait_for_slow_calls, workers,
};

/// A configuration that permits only one run at a time. If a cancelled run kept its permit, the next run could not
/// start.
const ONE_RUN: &str = "[runs]\nwait_seconds = 0.2\nabandoned_seconds = 0\n[pool]\nidle = 1\nrunning = 1\n";
const ONE_RUN_NO_BACKGROUND: &str = "[pool]\nidle = 1\nrunning = 1\n";

async fn cancel_call(session: &Session, tool: &'static str, arguments: &serde_json::Value, calls: u64) {
    let request = start_cancellable(session, tool, arguments).await;
    wait_for_slow_calls(session, calls).await;
    request.cancel(Some("the person pressed escape".into())).await.unwrap();
}

#[tokio::test]
async fn cancelling_a_request_ends_the_run_its_call_and_its_worker() {
    let mut table = Table::new("cancelled requests");
    for (era, mode) in eras() {
        for (name, config) in [("run_code", ONE_RUN_NO_BACKGROUND), ("get_result", ONE_RUN)] {
            let lockhouse = lockhouse(config);
            let session = session(&lockhouse, mode.clone()).await;
            let mut row = |what: &str, outcome| table.row(format!("{era}, {name}: {what}"), outcome);
            let handle = if name == "run_code" {
                cancel_call(&session, "run_code", &python(ENDLESS), 1).await;
                None
            } else {
                let handle = start_in_background(&session, ENDLESS).await;
                let arguments = json!({"handle": handle, "wait_s": 60});
                cancel_call(&session, "get_result", &arguments, 1).await;
                Some(handle)
            };
            wait_for_cancelled_calls(&session, 1).await;
            row("the server is told", equal(slow_calls(&session).await, (1, 1)));
            // The only permit is free again.
            let next = run(&session, "python", "1 + 1").await;
            row("the place is free", equal(&next["value"], &json!(2)));
            if let Some(handle) = handle {
                let answer = outcome(&session, &handle).await;
                row("its answer says so", equal(&answer["status"], &json!("cancelled")));
                let again = result(&session, json!({"handle": handle})).await;
                row("and says so again", equal(&again, &answer));
            }
            session.close().await;
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_queued_run_is_cancelled_at_once() {
    let mut table = Table::new("cancelled in the queue");
    for (era, mode) in eras() {
        let lockhouse = lockhouse(
            "[runs]\nwait_seconds = 0.2\nabandoned_seconds = 0\n[pool]\nidle = 1\nrunning = 1\nqueue = 1\n",
        );
        let session = session(&lockhouse, mode).await;
        let mut row = |what: &str, outcome| table.row(format!("{era}: {what}"), outcome);
        let first = start_with_worker(&session, ENDLESS).await;
        let queued = start_in_background(&session, "'never'").await;
        let told = result(&session, json!({"handle": queued, "wait_s": 0})).await;
        row("it waits", equal(&told["progress"]["waiting"], &json!("for a worker")));
        let full = session.run_code("python", "1").await;
        row("control: the queue is full", equal(&full["error"]["type"], &json!("Busy")));
        let request =
            start_cancellable(&session, "get_result", &json!({"handle": queued, "wait_s": 60})).await;
        request.cancel(None).await.unwrap();
        let answer = outcome(&session, &queued).await;
        row("it is cancelled", equal(&answer["status"], &json!("cancelled")));
        row("and has run nothing", ensure(answer.get("value").is_none(), &answer));
        // The queue has a free position again.
        let third = start_in_background(&session, "'third'").await;
        let request =
            start_cancellable(&session, "get_result", &json!({"handle": first, "wait_s": 60})).await;
        request.cancel(None).await.unwrap();
        let answer = outcome(&session, &third).await;
        row("the next one takes its place", equal(&answer["value"], &json!("third")));
        session.close().await;
    }
    table.finish();
}

#[tokio::test]
async fn disconnecting_over_stdio_ends_all_runs() {
    for (_, mode) in eras() {
        let lockhouse = lockhouse(ONE_RUN);
        let session = session(&lockhouse, mode).await;
        start_in_background(&session, ENDLESS).await;
        start_in_background(&session, "'queued'").await;
        let processes = workers(&session);
        assert!(!processes.is_empty());
        let ended = session.close().await;
        assert_eq!(ended.status, Some(0), "{ended:?}");
        for worker in processes {
            wait_until("the worker is gone", async || (!lockhouse_tests::is_alive(worker.pid)).then_some(()))
                .await;
        }
        let ends = lockhouse.records().into_iter().filter(|record| record["event"] == "end").count();
        assert!(ends <= 1, "a queued run has none, and has no end");
    }
}

#[tokio::test]
async fn a_cancelled_get_result_does_not_end_the_run_at_once() {
    let mut table = Table::new("cancelled get_result");
    for (era, mode) in eras() {
        let lockhouse = lockhouse("[runs]\nwait_seconds = 0.2\n");
        let session = session(&lockhouse, mode).await;
        let code = "from mcp_tools.fixture import slow\nslow(ms=1500)\n'done'";
        let handle = start_in_background(&session, code).await;
        let request =
            start_cancellable(&session, "get_result", &json!({"handle": handle, "wait_s": 60})).await;
        wait_for_slow_calls(&session, 1).await;
        request.cancel(None).await.unwrap();
        let answer = result(&session, json!({"handle": handle, "wait_s": 60})).await;
        table.row(format!("{era}: the run has gone on"), equal(&answer["value"], &json!("done")));
        session.close().await;
    }
    table.finish();
}
