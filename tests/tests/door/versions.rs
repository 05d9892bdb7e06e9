//! Every version of the protocol, and what is none.

use lockhouse_tests::{
    ALL_VERSIONS, Door, LATEST_VERSION, Lockhouse, Reply, Table, ensure, equal, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::OPEN;

#[tokio::test]
async fn every_version_runs_code_over_http() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let door = lockhouse.door().await;
    let mut table = Table::new("versions over HTTP");
    for version in ALL_VERSIONS {
        let visitor = match version {
            LATEST_VERSION => door.visitor(None),
            earlier => door.session(None, earlier).await,
        };
        let answer = visitor.run_code("python", "6 * 7").await;
        table.row(version, equal(&answer["value"], &42.into()));
    }
    let reply = door.visitor(None).request("server/discover", json!({})).await;
    let found = reply.answer()["result"]["supportedVersions"].clone();
    table.row("discover names the latest", ensure(found.to_string().contains(LATEST_VERSION), reply));
    table.finish();
    assert_eq!(door.terminate().await.status, Some(0));
}

async fn posted(door: &Door, headers: &[(&str, &str)], body: String) -> Reply {
    let visitor = headers.iter().fold(door.visitor(None), |visitor, (name, value)| visitor.with(name, value));
    let response = visitor.http(Method::POST).body(body).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply { status, headers, body: response.text().await.unwrap() }
}

#[tokio::test]
async fn what_is_no_request_of_any_version_is_refused_in_words() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let door = lockhouse.door().await;
    let json_type = ("content-type", "application/json");
    let earlier = ("mcp-protocol-version", "2025-06-18");
    let list = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
    let mut unknown = door.visitor(None).message("tools/list", json!({}));
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01".into();
    let batch = json!([list(1), list(2)]).to_string();
    let mut table = Table::new("what is no request");
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
            "each message by itself",
        ),
        ("no JSON", vec![json_type, earlier], "{".into(), 400, "-32700"),
        ("no JSON-RPC", vec![json_type, earlier], json!({"a": 1}).to_string(), 415, ""),
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
        let reply = posted(&door, &headers, body).await;
        let holds = reply.status == status && reply.body.contains(words) && !reply.body.is_empty();
        table.row(name, ensure(holds, reply));
    }
    let visitor = door.visitor(None);
    for (method, status) in
        [(Method::GET, 405), (Method::DELETE, 405), (Method::PUT, 405), (Method::PATCH, 405)]
    {
        let found = visitor.http(method.clone()).send().await.unwrap().status().as_u16();
        table.row(format!("{method} of the latest version"), equal(found, status));
    }
    let elsewhere = door.url("/elsewhere");
    let found = reqwest::Client::builder().no_proxy().build().unwrap().get(elsewhere).send().await.unwrap();
    table.row("another path", equal(found.status().as_u16(), 404));
    let (session, reply) = door.visitor(None).initialize("2099-01-01").await;
    let answered = reply.answer()["result"]["protocolVersion"].clone();
    table.row("initialize with an unknown version offers one of ours", equal(answered, json!("2025-11-25")));
    drop(session);
    table.row("control", equal(visitor.run_code("python", "1").await["value"].clone(), json!(1)));
    table.finish();
}

/// Whether a program of this mark is running, as its file says while it does.
fn program(mark: &str) -> String {
    format!("import time\nprint('{mark}')\ntime.sleep(25)\n'never cancelled'")
}

#[tokio::test]
async fn a_request_of_the_latest_version_ends_with_its_connection() {
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[pool]\nrunning = 1\n"));
    let door = lockhouse.door().await;
    let visitor = door.visitor(None);
    let message = visitor.calling("run_code", json!({"language": "python", "code": program("a")}));
    let asking = tokio::spawn({
        let visitor = visitor.clone();
        async move { visitor.try_post(&message).await }
    });
    // The one place is taken, so the other waits until the first is gone.
    wait_until("it runs", async || is_running(&lockhouse).then_some(())).await;
    asking.abort();
    let answer = visitor.run_code("python", "'free'").await;
    assert_eq!(answer["value"], "free", "{answer}");
    let ended = ended(&lockhouse);
    assert!(ended.iter().any(|status| status == "cancelled"), "{ended:?}");
}

fn is_running(lockhouse: &Lockhouse) -> bool {
    lockhouse
        .records()
        .iter()
        .any(|record| record["event"] == "execution_started" || record["event"] == "execution")
}

fn ended(lockhouse: &Lockhouse) -> Vec<Value> {
    lockhouse.records().iter().filter_map(|record| record.get("status").cloned()).collect()
}
