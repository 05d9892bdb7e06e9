//! Tests of the limit on the number of background runs, and of answers of background runs that are too large to be
//! stored.

use lockhouse_tests::{Session, Table, ensure, equal};
use serde_json::json;

use crate::runs::{ENDLESS, lockhouse, outcome, result, session, start_cancellable, start_in_background};

const SLOW: &str = "from mcp_tools.fixture import slow\nslow(ms=900)['waited_ms']";

#[tokio::test]
async fn at_the_limit_of_background_runs_a_request_waits_for_its_run() {
    let mut table = Table::new("runs that may not continue in the background");
    for (name, config, kept) in [
        ("control: as many as one has", "background = 2\n", 1),
        ("none", "background = 0\n", 0),
        ("none of one client", "background_per_client = 0\n", 0),
        ("one, and one is there", "background_per_client = 1\n", 1),
        ("no place for answers", "[results]\nkeep_mib = 0\n", 0),
    ] {
        let lockhouse = lockhouse(&format!("[runs]\nwait_seconds = 0.2\n{config}"));
        let session = session(&lockhouse, Session::latest()).await;
        if kept == 1 {
            start_in_background(&session, ENDLESS).await;
        }
        let answer = session.run_code("python", SLOW).await;
        let found = if name.starts_with("control") { &answer["status"] } else { &answer["value"] };
        let expected = if name.starts_with("control") { json!("running") } else { json!(900) };
        table.row(name, equal(found, &expected));
    }
    table.finish();
}

#[tokio::test]
async fn a_waiting_request_gets_a_handle_as_soon_as_there_is_room() {
    let lockhouse = lockhouse("[runs]\nwait_seconds = 0.2\nabandoned_seconds = 0\nbackground = 1\n");
    let session = session(&lockhouse, Session::latest()).await;
    let first = start_in_background(&session, ENDLESS).await;
    let second = session.start_code("python", ENDLESS);
    let request = start_cancellable(&session, "get_result", &json!({"handle": first, "wait_s": 60})).await;
    request.cancel(None).await.unwrap();
    outcome(&session, &first).await;
    let told = lockhouse_tests::structured(second.await.unwrap());
    assert_eq!(told["status"], "running", "{told}");
}

#[tokio::test]
async fn an_answer_too_large_to_be_stored_is_summarized() {
    let config = "[runs]\nwait_seconds = 0.2\n[results]\nkeep_mib = 1\n[limits]\nshown_bytes = 524288\n";
    let lockhouse = lockhouse(config);
    let session = session(&lockhouse, Session::latest()).await;
    let mut table = Table::new("stored answers");
    for (name, length, expected) in
        [("control: within bounds", 50_000, "ok"), ("too large", 400_000, "error")]
    {
        let code = format!("from mcp_tools.fixture import slow\nslow(ms=700)\n'x' * {length}");
        let handle = start_in_background(&session, &code).await;
        // Fetches the answer after the end: a request that waits for the end would get the whole answer.
        lockhouse_tests::wait_until("it is over", async || {
            let answer = result(&session, json!({"handle": handle, "wait_s": 0})).await;
            (answer["status"] != "running").then_some(())
        })
        .await;
        let answer = result(&session, json!({"handle": handle})).await;
        table.row(name, equal(&answer["status"], &json!(expected)));
        if expected == "error" {
            let calls = answer["calls"][0]["tool"] == "slow" && answer["error"]["type"] == "ResultTooLarge";
            table.row("it tells its calls", ensure(calls, &answer));
        }
    }
    table.finish();
}
