//! Tests of runs over HTTP. A lost connection cancels the run only in MCP versions without sessions.

use lockhouse_tests::{HttpClient, Lockhouse, Table, equal, wait_until};
use serde_json::{Value, json};

use crate::runs::{ENDLESS, python};

const OPEN: &str = "[http]\nauth = \"none\"\n[runs]\nwait_seconds = 0.2\nabandoned_seconds = 0\n[pool]\nidle = 1\nrunning = 2\n";
const EARLIER: &str = "2025-11-25";

async fn outcome(http_client: &HttpClient, handle: &Value) -> Value {
    wait_until("the run is over", async || {
        let answer = http_client.call("get_result", json!({"handle": handle, "wait_s": 5})).await;
        (answer["status"] != "running").then_some(answer)
    })
    .await
}

/// Returns the outcomes of all calls of the fixture server's tool `slow` that the audit log has so far.
fn outcomes(lockhouse: &Lockhouse) -> Vec<Value> {
    let of_slow = |record: &Value| record["event"] == "outcome" && record["tool"] == "slow";
    lockhouse.audit().into_iter().filter(of_slow).map(|record| record["outcome"].clone()).collect()
}

/// Returns the number of calls of the fixture server's tool `slow` that the audit log has so far.
fn calls(lockhouse: &Lockhouse) -> usize {
    lockhouse.audit().iter().filter(|record| record["event"] == "call" && record["tool"] == "slow").count()
}

#[tokio::test]
async fn a_run_is_available_in_another_session_of_the_same_client() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("runs over HTTP");
    for (era, http_client) in
        [("2026-07-28", daemon.http_client(None)), (EARLIER, daemon.session(None, EARLIER).await)]
    {
        let code = "from mcp_tools.fixture import slow\nslow(ms=900)['waited_ms']";
        let told = http_client.run_code("python", code).await;
        table.row(format!("{era}: it goes on"), equal(&told["status"], &json!("running")));
        let answer = outcome(&http_client, &told["handle"]).await;
        table.row(format!("{era}: its answer"), equal(&answer["value"], &json!(900)));
        let later = daemon.session(None, EARLIER).await;
        let again = outcome(&later, &told["handle"]).await;
        table.row(format!("{era}: in another session"), equal(&again, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn a_lost_connection_cancels_the_run_only_in_the_era_without_sessions() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("connections that are lost while get_result waits");
    for (era, http_client, ends) in [
        ("2026-07-28", daemon.http_client(None), true),
        (EARLIER, daemon.session(None, EARLIER).await, false),
    ] {
        let (before, over) = (calls(&lockhouse), outcomes(&lockhouse).len());
        let handle = http_client.run_code("python", ENDLESS).await["handle"].clone();
        wait_until("the call is under way", async || (calls(&lockhouse) > before).then_some(())).await;
        let message = http_client.calling("get_result", json!({"handle": handle, "wait_s": 60}));
        let waits = tokio::spawn({
            let http_client = http_client.clone();
            async move { http_client.try_post(&message).await.map(drop) }
        });
        // Nothing else shows that Lockhouse reads the request, so the test waits for the answer to a later one.
        let told = http_client.call("get_result", json!({"handle": handle, "wait_s": 0.3})).await;
        table.row(format!("{era}: control: it runs"), equal(&told["status"], &json!("running")));
        waits.abort();
        let _ = waits.await;
        if ends {
            let answer = outcome(&http_client, &handle).await;
            table.row(format!("{era}: it is cancelled"), equal(&answer["status"], &json!("cancelled")));
            let told = wait_until("its call is over", async || outcomes(&lockhouse).get(over).cloned());
            table.row(format!("{era}: and its call"), equal(told.await, json!("unknown")));
        } else {
            let told = http_client.call("get_result", json!({"handle": handle, "wait_s": 0.5})).await;
            table.row(format!("{era}: it goes on"), equal(&told["status"], &json!("running")));
        }
    }
    table.finish();
}

#[tokio::test]
async fn closing_a_request_before_its_run_has_a_handle_cancels_the_run() {
    let config = OPEN.replace("wait_seconds = 0.2", "wait_seconds = 60");
    let lockhouse = Lockhouse::with_fixture().config(&config);
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(None);
    let message = http_client.calling("run_code", python(ENDLESS));
    let waits = tokio::spawn({
        let http_client = http_client.clone();
        async move { http_client.try_post(&message).await.map(drop) }
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
async fn a_cancellation_notification_of_a_session_cancels_its_run() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.session(None, EARLIER).await;
    let handle = http_client.run_code("python", ENDLESS).await["handle"].clone();
    wait_until("the call is under way", async || (calls(&lockhouse) > 0).then_some(())).await;
    let message = http_client.calling("get_result", json!({"handle": handle, "wait_s": 60}));
    let id = message["id"].clone();
    let waits = tokio::spawn({
        let http_client = http_client.clone();
        async move { http_client.try_post(&message).await.map(drop) }
    });
    let cancelled = wait_until("it is cancelled", async || {
        // Repeats the notification, since Lockhouse ignores one that arrives before its request.
        http_client.notify("notifications/cancelled", json!({"requestId": id})).await;
        let answer = http_client.call("get_result", json!({"handle": handle, "wait_s": 0.1})).await;
        (answer["status"] != "running").then_some(answer)
    })
    .await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    wait_until("the call is given up", async || (outcomes(&lockhouse) == ["unknown"]).then_some(())).await;
    waits.abort();
}
