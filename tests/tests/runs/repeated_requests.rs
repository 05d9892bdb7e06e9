//! Tests of requests that an AI client sends again with the same `Idempotency-Key`: they are not carried out again.

use lockhouse_tests::{Lockhouse, Table, equal, wait_until};
use serde_json::{Value, json};

const OPEN: &str = "[http]\nauth = \"token\"\n";
const SLOW: &str = "from mcp_tools.fixture import slow\nslow(ms=50)['waited_ms']";

fn token(lockhouse: &Lockhouse, name: &str) -> String {
    lockhouse.run(&["token", "create", name]).stdout.trim().to_owned()
}

/// Returns a key that no other request has: its last digits are `number`.
fn key(number: u32) -> String {
    format!("0199c1f2-6c57-7e31-9d3e-{number:012}")
}

/// Returns how often the fixture server's tool `slow` was called, according to the audit log.
fn calls(lockhouse: &Lockhouse) -> usize {
    lockhouse.audit().iter().filter(|record| record["event"] == "call" && record["tool"] == "slow").count()
}

fn error(answer: &Value) -> (&Value, bool) {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    (&answer["error"]["type"], message.contains("Idempotency-Key"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_the_same_key_is_carried_out_once() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let [one, other] = ["one", "other"].map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let client = |token: &str, key: &str| daemon.http_client(Some(token)).with("Idempotency-Key", key);
    let mut table = Table::new("requests that are sent again");

    let first = client(&one, &key(1)).run_code("python", SLOW).await;
    table.row("the first request", equal(&first["value"], &json!(50)));
    let again = client(&one, &key(1)).run_code("python", SLOW).await;
    table.row("the same request again: its answer", equal(&again, &first));
    let quoted = client(&one, &format!("\"{}\"", key(1))).run_code("python", SLOW).await;
    table.row("with the key in quotation marks", equal(&quoted, &first));
    table.row("the tool was called once", equal(calls(&lockhouse), 1));
    let found = daemon.http_client(Some(&one)).call("get_result", json!({"handle": key(1)})).await;
    table.row("get_result with the key", equal(&found, &first));

    let control = daemon.http_client(Some(&one)).run_code("python", SLOW).await;
    table.row("control: without a key", equal(control["execution"] == first["execution"], false));
    table.row("control: the tool was called again", equal(calls(&lockhouse), 2));
    let another = client(&one, &key(2)).run_code("python", SLOW).await;
    table.row("control: with another key", equal(another["execution"] == first["execution"], false));
    let of_other = client(&other, &key(1)).run_code("python", SLOW).await;
    table.row("another client has its own keys", equal(of_other["execution"] == first["execution"], false));
    let stolen = daemon.http_client(Some(&other)).call("get_result", json!({"handle": key(2)})).await;
    table.row("another client does not find the run", equal(stolen["value"].is_null(), true));

    let before = calls(&lockhouse);
    let conflict = client(&one, &key(1)).run_code("python", &format!("{SLOW} + 1")).await;
    table.row("another program with the same key", equal(error(&conflict), (&json!("InvalidRequest"), true)));
    let invalid = client(&one, "not-a-uuid").run_code("python", SLOW).await;
    table.row("a key that is no UUID", equal(error(&invalid), (&json!("InvalidRequest"), true)));
    table.row("none of them was carried out", equal(calls(&lockhouse), before));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_a_handle_is_found_by_its_key() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let one = token(&lockhouse, "one");
    let daemon = lockhouse.daemon().await;
    let code = "from mcp_tools.fixture import slow\nslow(ms=1500)['waited_ms']";
    let mut table = Table::new("requests whose connection is lost before they have a handle");
    for (number, how) in [(1, "get_result"), (2, "the same request")] {
        let client = daemon.http_client(Some(&one)).with("Idempotency-Key", &key(number));
        let before = calls(&lockhouse);
        let lost = client.clone();
        let request = tokio::spawn(async move { lost.run_code("python", code).await });
        wait_until("the call is made", async || (calls(&lockhouse) > before).then_some(())).await;
        request.abort();
        let _ = request.await;
        let answer = match how {
            "get_result" => {
                let arguments = json!({"handle": key(number), "wait_s": 10});
                daemon.http_client(Some(&one)).call("get_result", arguments).await
            }
            _ => client.run_code("python", code).await,
        };
        table.row(format!("{how}: the value"), equal(&answer["value"], &json!(1500)));
        table.row(format!("{how}: the tool was called once"), equal(calls(&lockhouse), before + 1));
    }
    table.finish();
}
