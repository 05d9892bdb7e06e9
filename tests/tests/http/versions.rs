//! Tests of all supported MCP protocol versions over HTTP, and of requests that no version permits.

use lockhouse_tests::{
    ALL_VERSIONS, Daemon, LATEST_VERSION, Lockhouse, Reply, Table, ensure, equal, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::http::OPEN;

#[tokio::test]
async fn every_version_runs_code_over_http() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("versions over HTTP");
    for version in ALL_VERSIONS {
        let http_client = match version {
            LATEST_VERSION => daemon.http_client(None),
            earlier => daemon.session(None, earlier).await,
        };
        let answer = http_client.run_code("python", "6 * 7").await;
        table.row(version, equal(&answer["value"], &42.into()));
    }
    let reply = daemon.http_client(None).request("server/discover", json!({})).await;
    let found = reply.answer()["result"]["supportedVersions"].clone();
    table.row("discover names the latest", ensure(found.to_string().contains(LATEST_VERSION), reply));
    table.finish();
    assert_eq!(daemon.terminate().await.status, Some(0));
}

async fn post(daemon: &Daemon, headers: &[(&str, &str)], body: String) -> Reply {
    let http_client = headers
        .iter()
        .fold(daemon.http_client(None), |http_client, (name, value)| http_client.with(name, value));
    let response = http_client.http(Method::POST).body(body).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply { status, headers, body: response.text().await.unwrap() }
}

#[tokio::test]
async fn requests_valid_in_no_version_are_refused_with_a_reason() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let json_type = ("content-type", "application/json");
    let earlier = ("mcp-protocol-version", "2025-06-18");
    let list = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let mut unknown = daemon.http_client(None).message("tools/list", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let batch = json!([list(1), list(2)]).to_string();
    let mut table = Table::new("invalid requests");
    for (name, headers, body, status, words) in [
        (
            "an unknown version",
            vec![json_type, ("mcp-protocol-version", "2099-01-01")],
            list(1).to_string(),
            400,
            "2099-01-01",
        ),
        (
            "an unknown version of the latest era",
            vec![json_type, ("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")],
            unknown.to_string(),
            400,
            "2026-07-28",
        ),
        (
            "a batch",
            vec![json_type, ("mcp-protocol-version", "2025-03-26")],
            batch,
            400,
            "each message separately",
        ),
        ("no JSON", vec![json_type, earlier], "{".into(), 400, "-32700"),
        ("no JSON-RPC", vec![json_type, earlier], json!({"a": 1}).to_string(), 400, "-32600"),
        (
            "another content",
            vec![("content-type", "text/plain"), earlier],
            list(1).to_string(),
            415,
            "application/json",
        ),
        (
            "a form",
            vec![("content-type", "application/x-www-form-urlencoded"), earlier],
            "a=1".into(),
            415,
            "application/json",
        ),
        (
            "no events accepted",
            vec![json_type, ("accept", "application/json"), earlier],
            list(1).to_string(),
            406,
            "text/event-stream",
        ),
        ("no session", vec![json_type, earlier], list(1).to_string(), 400, "ession"),
    ] {
        let reply = post(&daemon, &headers, body).await;
        let holds = reply.status == status && reply.body.contains(words) && !reply.body.is_empty();
        table.row(name, ensure(holds, reply));
    }
    let http_client = daemon.http_client(None);
    for (method, status) in
        [(Method::GET, 405), (Method::DELETE, 405), (Method::PUT, 405), (Method::PATCH, 405)]
    {
        let found = http_client.http(method.clone()).send().await.unwrap().status().as_u16();
        table.row(format!("{method} of the latest version"), equal(found, status));
    }
    let elsewhere = daemon.url("/elsewhere");
    let found = reqwest::Client::builder().no_proxy().build().unwrap().get(elsewhere).send().await.unwrap();
    table.row("another path", equal(found.status().as_u16(), 404));
    let (session, reply) = daemon.http_client(None).initialize("2099-01-01").await;
    let answered = reply.answer()["result"]["protocolVersion"].clone();
    table.row("initialize with an unknown version offers one of ours", equal(answered, json!("2025-11-25")));
    drop(session);
    table.row("control", equal(http_client.run_code("python", "1").await["value"].clone(), json!(1)));
    table.finish();
}

/// Returns a Python program that prints `mark` and then sleeps for 25 s, so a test can cancel it.
fn program(mark: &str) -> String {
    format!("import time\nprint('{mark}')\ntime.sleep(25)\n'never cancelled'")
}

#[tokio::test]
async fn a_request_of_the_latest_version_ends_with_its_connection() {
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[pool]\nrunning = 1\n"));
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(None);
    let message = http_client.calling("run_code", json!({"language": "python", "code": program("a")}));
    let asking = tokio::spawn({
        let http_client = http_client.clone();
        async move { http_client.try_post(&message).await }
    });
    // The only worker is in use, so the second run waits until the first run has ended.
    wait_until("it runs", async || is_running(&lockhouse).then_some(())).await;
    asking.abort();
    let answer = http_client.run_code("python", "'free'").await;
    assert_eq!(answer["value"], "free", "{answer}");
    let ended = run_ends(&lockhouse);
    assert!(ended.iter().any(|status| status == "cancelled"), "{ended:?}");
}

fn is_running(lockhouse: &Lockhouse) -> bool {
    lockhouse
        .records()
        .iter()
        .any(|record| record["event"] == "execution_started" || record["event"] == "execution")
}

fn run_ends(lockhouse: &Lockhouse) -> Vec<Value> {
    lockhouse.records().iter().filter_map(|record| record.get("status").cloned()).collect()
}
