//! Runs of clients over HTTP: a lost connection is a cancellation in one era and none in the others.

use lockhouse_tests::{Lockhouse, Table, Visitor, equal, wait_until};
use serde_json::{Value, json};

use crate::{ENDLESS, python};

const OPEN: &str = "[http]\nauth = \"none\"\n[runs]\nwait_seconds = 0.2\n[pool]\nidle = 1\nrunning = 2\n";
const EARLIER: &str = "2025-11-25";

async fn outcome(visitor: &Visitor, handle: &Value) -> Value {
    wait_until("the run is over", async || {
        let answer = visitor.call("get_result", json!({"handle": handle, "wait_s": 5})).await;
        (answer["status"] != "running").then_some(answer)
    })
    .await
}

/// The outcomes of calls of `slow` so far.
fn outcomes(lockhouse: &Lockhouse) -> Vec<Value> {
    let of_slow = |record: &Value| record["event"] == "outcome" && record["tool"] == "slow";
    lockhouse.audit().into_iter().filter(of_slow).map(|record| record["outcome"].clone()).collect()
}

/// How many calls of it went out so far.
fn calls(lockhouse: &Lockhouse) -> usize {
    lockhouse.audit().iter().filter(|record| record["event"] == "call" && record["tool"] == "slow").count()
}

#[tokio::test]
async fn a_run_is_picked_up_in_another_session_of_the_same_client() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let door = lockhouse.door().await;
    let mut table = Table::new("runs over HTTP");
    for (era, visitor) in [("2026-07-28", door.visitor(None)), (EARLIER, door.session(None, EARLIER).await)] {
        let code = "from mcp_tools.fixture import slow\nslow(ms=900)['waited_ms']";
        let told = visitor.run_code("python", code).await;
        table.row(format!("{era}: it goes on"), equal(&told["status"], &json!("running")));
        let answer = outcome(&visitor, &told["handle"]).await;
        table.row(format!("{era}: its answer"), equal(&answer["value"], &json!(900)));
        let later = door.session(None, EARLIER).await;
        let again = outcome(&later, &told["handle"]).await;
        table.row(format!("{era}: in another session"), equal(&again, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn a_connection_that_is_lost_ends_the_run_in_the_era_without_sessions_alone() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let door = lockhouse.door().await;
    let mut table = Table::new("connections that are lost while get_result waits");
    for (era, visitor, ends) in
        [("2026-07-28", door.visitor(None), true), (EARLIER, door.session(None, EARLIER).await, false)]
    {
        let (before, over) = (calls(&lockhouse), outcomes(&lockhouse).len());
        let handle = visitor.run_code("python", ENDLESS).await["handle"].clone();
        wait_until("the call is under way", async || (calls(&lockhouse) > before).then_some(())).await;
        let message = visitor.calling("get_result", json!({"handle": handle, "wait_s": 60}));
        let waits = tokio::spawn({
            let visitor = visitor.clone();
            async move { visitor.try_post(&message).await.map(drop) }
        });
        // That its request is heard shows in nothing but its end: another one that came after it is answered.
        let told = visitor.call("get_result", json!({"handle": handle, "wait_s": 0.3})).await;
        table.row(format!("{era}: control: it runs"), equal(&told["status"], &json!("running")));
        waits.abort();
        let _ = waits.await;
        if ends {
            let answer = outcome(&visitor, &handle).await;
            table.row(format!("{era}: it is cancelled"), equal(&answer["status"], &json!("cancelled")));
            let told = wait_until("its call is over", async || outcomes(&lockhouse).get(over).cloned());
            table.row(format!("{era}: and its call"), equal(told.await, json!("unknown")));
        } else {
            let told = visitor.call("get_result", json!({"handle": handle, "wait_s": 0.5})).await;
            table.row(format!("{era}: it goes on"), equal(&told["status"], &json!("running")));
        }
    }
    table.finish();
}

#[tokio::test]
async fn a_request_that_is_closed_before_its_run_has_a_handle_ends_it() {
    let config = OPEN.replace("wait_seconds = 0.2", "wait_seconds = 60");
    let lockhouse = Lockhouse::with_fixture().config(&config);
    let door = lockhouse.door().await;
    let visitor = door.visitor(None);
    let message = visitor.calling("run_code", python(ENDLESS));
    let waits = tokio::spawn({
        let visitor = visitor.clone();
        async move { visitor.try_post(&message).await.map(drop) }
    });
    wait_until("the call is under way", async || {
        lockhouse.audit().iter().any(|record| record["tool"] == "slow").then_some(())
    })
    .await;
    waits.abort();
    let _ = waits.await;
    wait_until("the call is given up", async || (outcomes(&lockhouse) == ["unknown"]).then_some(())).await;
    let ended = wait_until("the run is over", async || {
        lockhouse.records().into_iter().find(|record| record["event"] == "end")
    })
    .await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
}

#[tokio::test]
async fn a_session_that_notifies_of_a_cancellation_ends_its_run() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let door = lockhouse.door().await;
    let visitor = door.session(None, EARLIER).await;
    let handle = visitor.run_code("python", ENDLESS).await["handle"].clone();
    wait_until("the call is under way", async || (calls(&lockhouse) > 0).then_some(())).await;
    let message = visitor.calling("get_result", json!({"handle": handle, "wait_s": 60}));
    let id = message["id"].clone();
    let waits = tokio::spawn({
        let visitor = visitor.clone();
        async move { visitor.try_post(&message).await.map(drop) }
    });
    let cancelled = wait_until("it is cancelled", async || {
        // Heard once the request is: a notification for a request that is not there yet is for nothing.
        visitor.notify("notifications/cancelled", json!({"requestId": id})).await;
        let answer = visitor.call("get_result", json!({"handle": handle, "wait_s": 0.1})).await;
        (answer["status"] != "running").then_some(answer)
    })
    .await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    wait_until("the call is given up", async || (outcomes(&lockhouse) == ["unknown"]).then_some(())).await;
    waits.abort();
}
