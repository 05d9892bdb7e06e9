//! Tests of what the page shows of real runs, approvals and denials.

use lockhouse_tests::{Table, ensure, equal};
use serde_json::{Value, json};

use crate::page::Scene;

const CALLS: &str = "\
from mcp_tools import fixture, ToolError
fixture.echo(value=1)
for name in ('delete_everything', 'count'):
    try: getattr(fixture, name)()
    except ToolError: pass
len(fixture.big(bytes=50000))
";

/// Returns the first run of a list that has this status.
fn run<'v>(runs: &'v Value, status: &str) -> &'v Value {
    runs["recent"].as_array().unwrap().iter().find(|run| run["status"] == status).unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_shown_with_its_program_and_its_calls() {
    let Scene { session, browser, .. } = &Scene::new().await;
    let mut events = browser.events().await;
    let answer = session.run_code("python", CALLS).await;
    assert_eq!(answer["value"], 50_000, "{answer}");
    let runs = events.until("runs", |runs| run(runs, "ok")["calls"] == 4).await;
    let shown = run(&runs, "ok");
    let mut table = Table::new("a run that has ended");
    for (name, expected) in [
        ("client", json!("lockhouse-tests")),
        ("language", json!("python")),
        ("state", json!("ended")),
        ("denied", json!(1)),
        ("code_bytes", json!(CALLS.len())),
        ("answer_bytes", json!(5)),
    ] {
        table.row(name, equal(shown[name].clone(), expected));
    }
    let bytes = shown["result_bytes"].as_u64().unwrap();
    table.row("result_bytes", ensure(bytes > 50_000, bytes));
    let reply = browser.get(&format!("/api/runs/{}", shown["execution"].as_str().unwrap())).await;
    let details = reply.json();
    table.row("the program", equal(details["program"]["text"].clone(), CALLS.into()));
    table.row("the program is genuine", equal(details["program"]["state"].clone(), "genuine".into()));
    let calls: Vec<Value> = details["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| json!([call["item"], call["outcome"], call["line"]]))
        .collect();
    let expected = json!([
        ["echo", "ok", 2],
        ["delete_everything", "denied", null],
        ["count", "ok", 4],
        ["big", "ok", 6]
    ]);
    table.row("the calls", equal(json!(calls), expected));
    let starts: Vec<f64> =
        details["calls"].as_array().unwrap().iter().map(|call| call["start_ms"].as_f64().unwrap()).collect();
    table.row("the calls begin one after the other", ensure(starts.is_sorted() && starts[0] > 0.0, starts));
    let denied = &details["calls"][1];
    table.row("the reason", ensure(denied["reason"].as_str().unwrap().contains("delete_*"), denied));
    table.row("the rule", ensure(denied["rule"].as_str().unwrap().ends_with("policy.toml:6"), denied));
    let savings = events.until("savings", |savings| savings["days"][0]["clients"][0]["runs"] == 1).await;
    let client = &savings["days"][0]["clients"][0];
    table.row("bytes kept out", equal(client["kept_out_bytes"].clone(), json!(bytes - 5)));
    table.row("tokens kept out", equal(client["kept_out_tokens"].clone(), json!((bytes - 5) / 4)));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_program_is_shown_with_its_cpu_time_and_memory() {
    let Scene { session, browser, .. } = &Scene::new().await;
    let mut events = browser.events().await;
    let running = session.start_code("python", "from mcp_tools import fixture\nfixture.slow(ms=60000)");
    let is_complete =
        |runs: &Value| runs["active"][0]["calls"] == 0 && runs["active"][0]["memory_bytes"].is_u64();
    let runs = events.until("runs", is_complete).await;
    let shown = &runs["active"][0];
    let mut table = Table::new("an active run");
    table.row("supervisor", equal(shown["supervisor"].clone(), json!(session.pid())));
    table.row("state", equal(shown["state"].clone(), "running".into()));
    table.row("CPU time", ensure(shown["cpu_ms"].as_f64().is_some(), shown));
    table.row("memory", ensure(shown["memory_bytes"].as_u64().unwrap() > 1_000_000, shown));
    table.row("worker", ensure(shown["pid"].is_u64(), shown));
    let path = format!("/api/runs/{}", shown["execution"].as_str().unwrap());
    let call = loop {
        let details = browser.get(&path).await.json();
        if details["calls"][0]["start_ms"].is_f64() {
            break details["calls"][0].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    table.row(
        "its call is not over",
        equal(json!([call["item"], call["ms"], call["outcome"]]), json!(["slow", null, null])),
    );
    table.finish();
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn denials_servers_and_processes_are_shown() {
    let Scene { session, browser, .. } = &Scene::new().await;
    let mut events = browser.events().await;
    for _ in 0..2 {
        session.run_code("python", CALLS).await;
    }
    let denials = events.until("denials", |denials| denials["denials"][0]["count"] == 2).await;
    let denial = &denials["denials"][0];
    let mut table = Table::new("other sections");
    for (name, expected) in [
        ("client", json!("lockhouse-tests")),
        ("server", json!("fixture")),
        ("item", json!("delete_everything")),
        ("decision", json!("deny")),
        // The lookup of a tool has no line.
        ("line", Value::Null),
        ("suggests", json!(["ask", "allow"])),
    ] {
        table.row(format!("denial: {name}"), equal(denial[name].clone(), expected));
    }
    let servers = events
        .until("servers", |servers| {
            let server = &servers["servers"][0];
            server["latency"]["calls"] == 6 && server["states"][0]["tools"].is_u64()
        })
        .await;
    let server = &servers["servers"][0];
    table.row(
        "server",
        equal(json!([server["name"], server["states"][0]["state"]]), json!(["fixture", "connected"])),
    );
    table.row("tools", ensure(server["states"][0]["tools"].as_u64().unwrap() > 5, server));
    table.row("latency", ensure(server["latency"]["p50_ms"].as_f64().unwrap() > 0.0, server));
    let processes =
        browser.events().await.until("processes", |shown| shown["processes"][0]["pid"].is_u64()).await;
    let process = &processes["processes"][0];
    table.row("process", equal(process["pid"].clone(), json!(session.pid())));
    table.row("no member that changes at rest", ensure(process["uptime_s"].is_null(), process));
    table.finish();
}
