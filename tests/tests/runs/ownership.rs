//! Tests of several AI clients of one daemon: only the client that started a run can access it, and runs are scheduled
//! fairly between clients.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockhouse_tests::{HttpClient, Lockhouse, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use crate::runs::{ENDLESS, error_message, python};

const CONFIG: &str = "[clients]\nrequests = \"10000/min\"\nruns = \"10000/min\"\nrunning = 1000\n";
const EARLIER: &str = "2025-11-25";

fn token(lockhouse: &Lockhouse, name: &str) -> String {
    let created = lockhouse.run(&["token", "create", name]);
    created.stdout.lines().last().expect("a token").trim().to_owned()
}

fn tasks_capability() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/tasks": {}}})
}

#[tokio::test]
async fn a_run_is_accessible_only_to_its_own_client() {
    let config = format!("{CONFIG}[runs]\nwait_seconds = 0.2\n");
    let lockhouse = Lockhouse::with_fixture().config(&config);
    let (own, other) = (token(&lockhouse, "own"), token(&lockhouse, "other"));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("a client, and another client that knows the handle");
    let owner = daemon.http_client(Some(&own)).with_capabilities(tasks_capability());
    let told = daemon.http_client(Some(&own)).run_code("python", ENDLESS).await;
    let handle = told["handle"].clone();
    table.row("control: it runs", equal(&told["status"], &json!("running")));
    let strangers = [
        ("2026-07-28", daemon.http_client(Some(&other)).with_capabilities(tasks_capability())),
        (
            EARLIER,
            daemon
                .http_client(Some(&other))
                .with_capabilities(tasks_capability())
                .initialize(EARLIER)
                .await
                .0,
        ),
    ];
    let words = |answer: &Value, handle: &Value| error_message(answer, handle.as_str().unwrap_or("-"));
    for (era, stranger) in strangers {
        let mut row = |what: &str, outcome| table.row(format!("{era}: {what}"), outcome);
        let unknown = json!("0".repeat(32));
        let of_nobody = stranger.call("get_result", json!({"handle": unknown})).await;
        let of_another = stranger.call("get_result", json!({"handle": handle})).await;
        let same = words(&of_another, &handle) == words(&of_nobody, &unknown);
        row("get_result", ensure(same && of_another["status"] == "error", &of_another));
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let of = async |id: &Value| {
                let parameters = json!({"taskId": id, "inputResponses": {}});
                stranger.request(method, parameters).await.answer()["error"].clone()
            };
            let (another, nobody) = (of(&handle).await, of(&unknown).await);
            row(method, ensure(another["code"] == -32602 && another == nobody, (another, nobody)));
        }
    }
    let now = owner.call("get_result", json!({"handle": handle, "wait_s": 0})).await;
    table.row("it still runs", equal(&now["status"], &json!("running")));
    let cancelled = owner.request("tasks/cancel", json!({"taskId": handle})).await.answer();
    table.row("control: its own client ends it", ensure(cancelled.get("result").is_some(), &cancelled));
    let ended = wait_until("it is over", async || {
        let answer = owner.call("get_result", json!({"handle": handle})).await;
        (answer["status"] != "running").then_some(answer)
    });
    table.row("and it is", equal(&ended.await["status"], &json!("cancelled")));
    table.finish();
}

#[tokio::test]
async fn a_client_that_floods_the_queue_gets_no_more_than_its_share() {
    let config = format!("{CONFIG}[pool]\nidle = 1\nrunning = 2\n");
    let lockhouse = Lockhouse::with_fixture().config(&config);
    let (many, one) = (token(&lockhouse, "many"), token(&lockhouse, "one"));
    let daemon = lockhouse.daemon().await;
    let flooding: HttpClient = daemon.http_client(Some(&many));
    let answered = Arc::new(AtomicUsize::new(0));
    let code = "from mcp_tools.fixture import slow\nslow(ms=100)['waited_ms']";
    let floods: Vec<_> = (0..100)
        .map(|_| {
            let (flooding, answered) = (flooding.clone(), answered.clone());
            tokio::spawn(async move {
                let answer = flooding.call("run_code", python(code)).await;
                answered.fetch_add(1, Ordering::Relaxed);
                answer
            })
        })
        .collect();
    wait_until("the flood is under way", async || (answered.load(Ordering::Relaxed) > 2).then_some(())).await;
    let mut table = Table::new("a client with one run and a client with a hundred");
    let http_client = daemon.http_client(Some(&one));
    for round in 0..3 {
        let before = answered.load(Ordering::Relaxed);
        let answer = http_client.call("run_code", python("'served'")).await;
        let passed = answered.load(Ordering::Relaxed) - before;
        table.row(format!("round {round}: served"), equal(&answer["value"], &json!("served")));
        // The runs in progress, and those that start before the answer arrives.
        table.row(format!("round {round}: in its turn"), ensure(passed <= 8, passed));
    }
    let left = 100 - answered.load(Ordering::Relaxed);
    table.row("control: the flood goes on", ensure(left > 20, left));
    let mut ok = 0;
    for flood in floods {
        ok += usize::from(flood.await.unwrap()["value"] == 100);
    }
    table.row("and is served whole", equal(ok, 100));
    table.finish();
}
