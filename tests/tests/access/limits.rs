//! How much one client may have of what all share.

use lockhouse_tests::{Door, Lockhouse, Table, ensure, equal, wait_until};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{asks, token, told};

const HANG: &str = "import time\nwhile True: time.sleep(0.01)";

async fn run(door: &Door, token: &str, code: &str) -> Value {
    door.visitor(Some(token)).run_code("python", code).await
}

fn kind(answer: &Value) -> &str {
    answer["error"]["type"].as_str().unwrap_or("ran")
}

#[tokio::test]
async fn requests_beyond_the_rate_are_refused_with_when_and_cost_another_client_nothing() {
    let lockhouse = Lockhouse::new().config("[clients]\nrequests = \"20/h\"\n");
    let (much, little) = (token(&lockhouse, &["much"]), token(&lockhouse, &["little"]));
    let door = lockhouse.door().await;
    let mut table = Table::new("requests");
    let mut answered = 0;
    let refused = loop {
        let reply = asks(&door.visitor(Some(&much))).await;
        if reply.status != 200 {
            break reply;
        }
        answered += 1;
    };
    table.row("as many as the rate", equal(answered, 20));
    table.row("the next one", equal(told(&refused), "429 too_many_requests".into()));
    let after: u64 = refused.header("retry-after").parse().unwrap_or_default();
    table.row("when to try again", ensure((1..=180).contains(&after), after));
    table.row("another client", equal(told(&asks(&door.visitor(Some(&little))).await), "200".into()));
    table.row("who is not let in is not counted", equal(asks(&door.visitor(None)).await.status, 401));
    table.finish();
}

#[tokio::test]
async fn a_client_pays_for_what_its_bodies_cost_and_another_client_does_not() {
    let lockhouse = Lockhouse::new().config("[clients]\nrequests = \"60/h\"\n");
    let names = ["bytes", "values", "little"];
    let [bytes, values, little] = names.map(|name| token(&lockhouse, &[name]));
    let door = lockhouse.door().await;
    let mut table = Table::new("what bodies cost");
    // Ten and two thirds of 16 KiB, and not JSON.
    let long = json!({"long": "x".repeat(170_000)}).to_string().replace('}', "");
    // 9000 values cost as much as 140 requests, and at most as much as there may be at once.
    let many = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {"x": vec![0; 9_000]}}});
    for (client, body, passed_on) in [(&bytes, long, 6), (&values, many.to_string(), 1)] {
        let visitor = door.visitor(Some(client));
        let post = async || {
            let request = visitor.http(Method::POST).header("content-type", "application/json");
            request.body(body.clone()).send().await.unwrap()
        };
        for number in 0..passed_on {
            let status = post().await.status().as_u16();
            table.row(format!("{passed_on} may pass: {number}"), ensure(status != 429, status));
        }
        let refused = post().await;
        table.row("one more", equal(refused.status().as_u16(), 429));
        let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap_or_default();
        table.row("when to try again", ensure((1..=3_660).contains(&after), after));
        table.row("a small one", equal(told(&asks(&visitor).await), "429 too_many_requests".into()));
    }
    for number in 0..10 {
        let reply = asks(&door.visitor(Some(&little))).await;
        table.row(format!("control: small request {number}"), equal(told(&reply), "200".into()));
    }
    table.finish();
}

#[tokio::test]
async fn runs_beyond_the_rate_or_the_number_are_refused_in_words_and_cost_another_client_nothing() {
    let lockhouse = Lockhouse::new().config("[clients]\nruns = \"6/h\"\nrunning = 2\n");
    let (much, little) = (token(&lockhouse, &["much"]), token(&lockhouse, &["little"]));
    let door = lockhouse.door().await;
    let mut table = Table::new("runs");
    let hang = |timeout: f64| json!({"language": "python", "code": HANG, "timeout_s": timeout});
    let running: Vec<_> = (0..2)
        .map(|_| {
            let visitor = door.visitor(Some(&much));
            tokio::spawn(async move { visitor.call("run_code", hang(20.0)).await })
        })
        .collect();
    let begun = |records: &[Value]| records.iter().filter(|record| record["event"] == "execution").count();
    wait_until("both run", async || (begun(&lockhouse.records()) == 2).then_some(())).await;
    let third = run(&door, &much, "1").await;
    let told = third["error"]["message"].as_str().unwrap_or_default();
    table.row(
        "a third at one time",
        ensure(kind(&third) == "RateLimited" && told.contains("2 runs of this client"), &third),
    );
    table.row("another client meanwhile", equal(run(&door, &little, "1").await["value"].clone(), 1.into()));
    running.iter().for_each(tokio::task::JoinHandle::abort);
    wait_until("there is room", async || (kind(&run(&door, &much, "1").await) == "ran").then_some(())).await;
    let mut last = Value::Null;
    for _ in 0..6 {
        last = run(&door, &much, "1").await;
    }
    let told = last["error"]["message"].as_str().unwrap_or_default();
    table.row(
        "beyond the rate",
        ensure(kind(&last) == "RateLimited" && told.contains("room again in"), &last),
    );
    table.row("when", ensure(last["error"]["retry_after_s"].as_u64().is_some_and(|after| after > 0), &last));
    table.row("another client", equal(run(&door, &little, "1").await["value"].clone(), 1.into()));
    table.finish();
}

#[tokio::test]
async fn one_client_cannot_take_all_sessions() {
    let lockhouse = Lockhouse::new().config("[clients]\nsessions = 2\n[sessions]\nmax = 3\n");
    let (much, little) = (token(&lockhouse, &["much"]), token(&lockhouse, &["little"]));
    let door = lockhouse.door().await;
    let mut table = Table::new("sessions");
    let in_session = async |token: &str, name: &str| {
        let visitor = door.visitor(Some(token));
        visitor.call("run_code", json!({"language": "python", "code": "1", "session": name})).await
    };
    for name in ["a", "b"] {
        table.row(name, equal(in_session(&much, name).await["value"].clone(), 1.into()));
    }
    let third = in_session(&much, "c").await;
    let told = third["error"]["message"].as_str().unwrap_or_default();
    let words =
        told.contains("2 sessions of this client") && told.contains("a (idle") && told.contains("b (idle");
    table.row("a third", ensure(kind(&third) == "SessionsBusy" && words, &third));
    table.row("control: another run in one", equal(in_session(&much, "a").await["value"].clone(), 1.into()));
    table.row("another client", equal(in_session(&little, "x").await["value"].clone(), 1.into()));
    let full = in_session(&little, "y").await;
    let told = full["error"]["message"].as_str().unwrap_or_default();
    let says =
        told.contains("x (idle") && told.contains("those of other clients") && !told.contains("a (idle");
    table.row("when all are taken nothing is told of others'", ensure(says, &full));
    table.finish();
}

#[tokio::test]
async fn who_started_the_process_has_no_limits_of_clients() {
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
