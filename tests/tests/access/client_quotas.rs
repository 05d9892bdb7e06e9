//! Tests of the rate limits and quotas that each AI client of a shared daemon has.

use lockhouse_tests::{Daemon, Lockhouse, Table, ensure, equal, wait_until};
use reqwest::Method;
use serde_json::{Value, json};

use crate::access::{list_tools, status_and_error, token};

const HANG: &str = "import time\nwhile True: time.sleep(0.01)";

async fn run(daemon: &Daemon, token: &str, code: &str) -> Value {
    daemon.http_client(Some(token)).run_code("python", code).await
}

fn kind(answer: &Value) -> &str {
    answer["error"]["type"].as_str().unwrap_or("ran")
}

#[tokio::test]
async fn requests_over_the_rate_limit_get_retry_after_and_do_not_affect_another_client() {
    let lockhouse = Lockhouse::new().config("[clients]\nrequests = \"20/h\"\n");
    let (much, little) = (token(&lockhouse, &["much"]), token(&lockhouse, &["little"]));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("requests");
    let mut answered = 0;
    let refused = loop {
        let reply = list_tools(&daemon.http_client(Some(&much))).await;
        if reply.status != 200 {
            break reply;
        }
        answered += 1;
    };
    table.row("as many as the rate", equal(answered, 20));
    table.row("the next request", equal(status_and_error(&refused), "429 too_many_requests".into()));
    let after: u64 = refused.header("retry-after").parse().unwrap_or_default();
    table.row("when to try again", ensure((1..=180).contains(&after), after));
    table.row(
        "another client",
        equal(status_and_error(&list_tools(&daemon.http_client(Some(&little))).await), "200".into()),
    );
    table.row(
        "rejected requests are not counted",
        equal(list_tools(&daemon.http_client(None)).await.status, 401),
    );
    table.finish();
}

#[tokio::test]
async fn the_cost_of_request_bodies_is_charged_to_their_own_client() {
    let lockhouse = Lockhouse::new().config("[clients]\nrequests = \"60/h\"\n");
    let names = ["bytes", "values", "little"];
    let [bytes, values, little] = names.map(|name| token(&lockhouse, &[name]));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("what bodies cost");
    // This body is 10⅔ times 16 KiB long and is not JSON.
    let long = json!({"long": "x".repeat(170_000)}).to_string().replace('}', "");
    // 9000 values cost as much as 140 requests, and at most the whole burst.
    let many = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {"x": vec![0; 9_000]}}});
    for (client, body, passed_on) in [(&bytes, long, 6), (&values, many.to_string(), 1)] {
        let http_client = daemon.http_client(Some(client));
        let post = async || {
            let request = http_client.http(Method::POST).header("content-type", "application/json");
            request.body(body.clone()).send().await.unwrap()
        };
        for number in 0..passed_on {
            let status = post().await.status().as_u16();
            table.row(format!("{passed_on} may pass: {number}"), ensure(status != 429, status));
        }
        let refused = post().await;
        table.row("one request more", equal(refused.status().as_u16(), 429));
        let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap_or_default();
        table.row("when to try again", ensure((1..=3_660).contains(&after), after));
        table.row(
            "a small request",
            equal(status_and_error(&list_tools(&http_client).await), "429 too_many_requests".into()),
        );
    }
    for number in 0..10 {
        let reply = list_tools(&daemon.http_client(Some(&little))).await;
        table.row(format!("control: small request {number}"), equal(status_and_error(&reply), "200".into()));
    }
    table.finish();
}

#[tokio::test]
async fn runs_beyond_the_active_ones_wait_for_their_turn() {
    let lockhouse = Lockhouse::new().config("[clients]\nrunning = 2\nwaiting = 30\n");
    let token = token(&lockhouse, &["desk"]);
    let daemon = lockhouse.daemon().await;
    let runs: Vec<_> = (0..30)
        .map(|number| {
            let http_client = daemon.http_client(Some(&token));
            let code = format!("import time; time.sleep(0.05); {number}");
            tokio::spawn(async move {
                http_client.call("run_code", json!({"language": "python", "code": code})).await
            })
        })
        .collect();
    let mut table = Table::new("thirty runs at one time");
    for (number, run) in runs.into_iter().enumerate() {
        let answer = run.await.expect("an answer");
        table.row(format!("run {number}"), equal(answer["value"].clone(), number.into()));
    }
    table.finish();
}

#[tokio::test]
async fn runs_over_the_rate_or_the_quota_are_rejected_and_do_not_affect_another_client() {
    let lockhouse = Lockhouse::new().config("[clients]\nruns = \"6/h\"\nrunning = 2\nwaiting = 0\n");
    let (much, little) = (token(&lockhouse, &["much"]), token(&lockhouse, &["little"]));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("runs");
    let hang = |timeout: f64| json!({"language": "python", "code": HANG, "timeout_s": timeout});
    let running: Vec<_> = (0..2)
        .map(|_| {
            let http_client = daemon.http_client(Some(&much));
            tokio::spawn(async move { http_client.call("run_code", hang(20.0)).await })
        })
        .collect();
    let begun = |records: &[Value]| records.iter().filter(|record| record["event"] == "execution").count();
    wait_until("both run", async || (begun(&lockhouse.records()) == 2).then_some(())).await;
    let third = run(&daemon, &much, "1").await;
    let reported = third["error"]["message"].as_str().unwrap_or_default();
    table.row(
        "a third concurrent run",
        ensure(kind(&third) == "RateLimited" && reported.contains("2 active runs"), &third),
    );
    table.row(
        "another client at the same time",
        equal(run(&daemon, &little, "1").await["value"].clone(), 1.into()),
    );
    running.iter().for_each(tokio::task::JoinHandle::abort);
    wait_until("there is room", async || (kind(&run(&daemon, &much, "1").await) == "ran").then_some(()))
        .await;
    let mut last = Value::Null;
    for _ in 0..6 {
        last = run(&daemon, &much, "1").await;
    }
    let reported = last["error"]["message"].as_str().unwrap_or_default();
    table
        .row("beyond the rate", ensure(kind(&last) == "RateLimited" && reported.contains("retry in"), &last));
    table.row("when", ensure(last["error"]["retry_after_s"].as_u64().is_some_and(|after| after > 0), &last));
    table.row("another client", equal(run(&daemon, &little, "1").await["value"].clone(), 1.into()));
    table.finish();
}

#[tokio::test]
async fn one_client_cannot_use_up_all_sessions() {
    let lockhouse = Lockhouse::new().config("[clients]\nsessions = 2\n[sessions]\nmax = 3\n");
    let (much, little) = (token(&lockhouse, &["much"]), token(&lockhouse, &["little"]));
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("sessions");
    let in_session = async |token: &str, name: &str| {
        let http_client = daemon.http_client(Some(token));
        http_client.call("run_code", json!({"language": "python", "code": "1", "session": name})).await
    };
    for name in ["a", "b"] {
        table.row(name, equal(in_session(&much, name).await["value"].clone(), 1.into()));
    }
    let third = in_session(&much, "c").await;
    let reported = third["error"]["message"].as_str().unwrap_or_default();
    let words =
        reported.contains("2 open sessions") && reported.contains("a (idle") && reported.contains("b (idle");
    table.row("a third", ensure(kind(&third) == "SessionsBusy" && words, &third));
    table.row(
        "control: another run in an open session",
        equal(in_session(&much, "a").await["value"].clone(), 1.into()),
    );
    table.row("another client", equal(in_session(&little, "x").await["value"].clone(), 1.into()));
    let full = in_session(&little, "y").await;
    let reported = full["error"]["message"].as_str().unwrap_or_default();
    let says = reported.contains("x (idle")
        && reported.contains("sessions of other clients")
        && !reported.contains("a (idle");
    table.row("the error reveals nothing about sessions of other clients", ensure(says, &full));
    table.finish();
}

#[tokio::test]
async fn a_client_over_standard_input_has_no_client_quotas() {
    let lockhouse =
        Lockhouse::new().config("[clients]\nrequests = \"1/h\"\nruns = \"1/h\"\nrunning = 1\nsessions = 1\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("over standard input");
    for number in 0..5 {
        let answer = session.run_in(&format!("s{number}"), "python", "1").await;
        table.row(format!("run {number}"), equal(answer["value"].clone(), 1.into()));
    }
    table.finish();
}
