//! Tests of the OpenTelemetry spans that a collector receives from the daemon. Most of them need a program that was
//! built with the feature `otel`, as `make test-quick` does.

use std::process::Command;

use lockhouse_tests::{
    Daemon, HttpAnswer, HttpServer, LATEST_VERSION, Lockhouse, Session, Table, ensure, equal, fixture_server,
    wait_until,
};
use rmcp::model::CallToolRequestParams;
use serde_json::{Value, json};

use crate::telemetry::OPEN;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// A text in the program, in the arguments of its call and in the result. It must not occur in any span.
const SECRET: &str = "hunter2-in-the-code";

async fn daemon(lockhouse: &Lockhouse, endpoint: &str) -> Daemon {
    Daemon::open(traced(lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]), endpoint)).await
}

/// Makes a command export its spans to a collector.
fn traced(mut command: Command, endpoint: &str) -> Command {
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    command.env("OTEL_BSP_SCHEDULE_DELAY", "50");
    command
}

/// Returns all spans that the OpenTelemetry collector has received.
fn spans(collector: &HttpServer) -> Vec<Value> {
    let arrays = |of: &Value, name: &str| of[name].as_array().cloned().unwrap_or_default();
    let requests = collector.requests();
    let resources = requests.iter().flat_map(|request| arrays(&request.message(), "resourceSpans"));
    let scopes = resources.flat_map(|resource| arrays(&resource, "scopeSpans"));
    scopes.flat_map(|scope| arrays(&scope, "spans")).collect()
}

fn attribute(span: &Value, name: &str) -> Value {
    let all = span["attributes"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|attribute| attribute["key"] == name);
    found.map(|found| found["value"]["stringValue"].clone()).unwrap_or_default()
}

#[tokio::test]
#[cfg_attr(feature = "otel", ignore = "needs a program without the feature otel: make test-default-features")]
async fn without_the_otel_feature_a_configured_collector_is_reported() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = daemon(&lockhouse, "http://127.0.0.1:9").await;
    daemon.wait_for_log("no traces are sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names").await;
    assert_eq!(daemon.http_client(None).run_code("python", "1 + 1").await["value"], 2);
}

#[tokio::test]
#[cfg_attr(
    not(feature = "otel"),
    ignore = "needs a program with the feature otel: make test-quick TESTS=traces"
)]
async fn the_trace_of_a_client_continues_through_a_run_to_the_servers() {
    let collector = HttpServer::start(|_| HttpAnswer::json(200, &json!({})));
    let (sent, server) = ("sent", fixture_server().display().to_string());
    let policy = "version = 1\n[servers.fixture]\nallow = [\"echo\"]\n";
    let lockhouse = Lockhouse::new().config(OPEN).policy(policy);
    let script = format!("tee '{}' | '{server}'", lockhouse.path(sent).display());
    let lockhouse = lockhouse.servers_entry("fixture", json!({"command": "sh", "args": ["-c", script]}));
    let daemon = daemon(&lockhouse, &collector.url("")).await;
    let http_client = daemon.http_client(None);
    let code = format!("from mcp_tools.fixture import echo\necho(value='{SECRET}')");
    let run = json!({
        "name": "run_code", "arguments": {"language": "python", "code": code},
        "_meta": {"traceparent": format!("00-{TRACE}-{PARENT}-01"), "baggage": "person=somebody"},
    });
    let answer = http_client.post(&http_client.message("tools/call", run)).await.answer();
    let expected =
        ["tools/call run_code", "run_code", "wait for a worker", "run in the worker", "tools/call echo"];
    let spans = wait_until("the spans are there", async || {
        let spans = spans(&collector);
        expected.iter().all(|name| spans.iter().any(|span| span["name"] == *name)).then_some(spans)
    });
    let spans = spans.await;
    let span = |name: &str| spans.iter().find(|span| span["name"] == name).cloned().unwrap_or_default();

    let mut table = Table::new("spans of one run");
    table.row("control: the run", equal(&answer["result"]["structuredContent"]["status"], &json!("ok")));
    for name in expected {
        table.row(format!("{name}: of the client's trace"), equal(&span(name)["traceId"], &json!(TRACE)));
    }
    let parents = [
        ("tools/call run_code", json!(PARENT)),
        ("run_code", span("tools/call run_code")["spanId"].clone()),
        ("wait for a worker", span("run_code")["spanId"].clone()),
        ("run in the worker", span("run_code")["spanId"].clone()),
        ("tools/call echo", span("run in the worker")["spanId"].clone()),
    ];
    for (name, parent) in parents {
        table.row(format!("{name}: its parent"), equal(&span(name)["parentSpanId"], &parent));
    }
    let execution = answer["result"]["structuredContent"]["execution"].clone();
    table.row(
        "the audit log's number",
        equal(&attribute(&span("run_code"), "lockhouse.execution.id"), &execution),
    );
    let tool = span("tools/call echo");
    for (name, value) in
        [("mcp.method.name", "tools/call"), ("gen_ai.tool.name", "echo"), ("lockhouse.server", "fixture")]
    {
        table.row(format!("the call: {name}"), equal(&attribute(&tool, name), &json!(value)));
    }
    let sent = std::fs::read_to_string(lockhouse.path(sent)).expect("what was sent");
    let handed_on = format!("00-{TRACE}-{}-01", tool["spanId"].as_str().unwrap_or_default());
    table.row("the server is told", ensure(sent.contains(&handed_on), &sent));
    table.row("control: the server gets the arguments", ensure(sent.contains(SECRET), &sent));
    table.row("and no baggage", ensure(!sent.contains("somebody"), &sent));
    let told = format!("{spans:?}");
    table.row("no code, argument or answer is told", ensure(!told.contains(SECRET), &told));
    table.finish();
}

#[tokio::test]
#[cfg_attr(
    not(feature = "otel"),
    ignore = "needs a program with the feature otel: make test-quick TESTS=traces"
)]
async fn invalid_trace_headers_start_a_new_trace_and_failures_are_recorded() {
    let collector = HttpServer::start(|_| HttpAnswer::json(200, &json!({})));
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = daemon(&lockhouse, &collector.url("")).await;
    for (name, version) in [("modern", Some(LATEST_VERSION)), ("legacy", None)] {
        let http_client = match version {
            Some(_) => daemon.http_client(None),
            None => daemon.session(None, "2025-11-25").await,
        };
        for parent in [json!("garbage"), json!({"a": 1}), json!(format!("00-{TRACE}-0000000000000000-01"))] {
            let run = json!({
                "name": "run_code", "arguments": {"language": "typescript", "code": "throw new Error('x')"},
                "_meta": {"traceparent": parent},
            });
            let answer = http_client.post(&http_client.message("tools/call", run)).await.answer();
            assert_eq!(answer["result"]["structuredContent"]["status"], "error", "{name}: {answer}");
        }
    }
    let of_runs = wait_until("the spans are there", async || {
        let spans = spans(&collector).into_iter().filter(|span| span["name"] == "run_code");
        let spans: Vec<Value> = spans.collect();
        (spans.len() == 6).then_some(spans)
    });
    let mut table = Table::new("new traces");
    for (number, span) in of_runs.await.into_iter().enumerate() {
        let own = span["traceId"].as_str().is_some_and(|id| id.len() == 32 && id != TRACE);
        table.row(format!("{number}: a trace of its own"), ensure(own, span.to_string()));
        table.row(format!("{number}: it failed"), equal(&attribute(&span, "error.type"), &json!("error")));
        table.row(format!("{number}: the status"), equal(&span["status"]["code"], &json!(2)));
    }
    table.finish();
}

/// Tests that each call of a client has one span with its outcome, also if the engine is in another process, if the call
/// needs several requests to the engine, and if it needs none.
#[tokio::test]
#[cfg_attr(
    not(feature = "otel"),
    ignore = "needs a program with the feature otel: make test-quick TESTS=traces"
)]
async fn each_call_has_one_span_also_in_a_shared_engine() {
    let mut table = Table::new("spans of calls over standard input and output");
    let shared = "[sharing]\nengine = \"shared\"\nidle_seconds = 2\ndirectory = \"/\"\n";
    for (process, config, engines) in [("one process", "", 1), ("a shared engine", shared, 2)] {
        let collector = HttpServer::start(|_| HttpAnswer::json(200, &json!({})));
        let lockhouse = Lockhouse::with_fixture().config(config);
        let command = traced(lockhouse.command(&["serve"]), &collector.url(""));
        let session = Session::connect(command, Session::latest()).await;
        let status = lockhouse.run(&["status", "--json"]).json();
        let own = status[0]["pid"] == session.pid();
        table.row(format!("{process}: control: whose engine"), equal(own, engines == 1));
        let valid = json!({"language": "python", "code": "from fixture import add\nadd(a=1, b=2)"});
        let calls = [
            ("run_code", valid, json!(null), json!(null)),
            ("search_tools", json!({"query": 7}), json!("tool_error"), json!(null)),
            ("get_result", json!({"handle": "r-0"}), json!("tool_error"), json!(null)),
            ("no_such_tool", json!({}), json!("-32602"), json!("-32602")),
        ];
        for (tool, arguments, ..) in &calls {
            let meta = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01"), "tracestate": "vendor=1"});
            let call = json!({"name": tool, "arguments": arguments, "_meta": meta});
            let call: CallToolRequestParams = serde_json::from_value(call).expect("a call");
            let _ = session.peer().call_tool_once(call).await;
        }
        // The span of the run ends last.
        let expected = ["run_code", "run in the worker", "tools/call add"].into_iter().map(str::to_owned);
        let expected: Vec<String> =
            expected.chain(calls.iter().map(|(tool, ..)| format!("tools/call {tool}"))).collect();
        let spans = wait_until("the spans are there", async || {
            let spans = spans(&collector);
            expected.iter().all(|name| spans.iter().any(|span| span["name"] == **name)).then_some(spans)
        })
        .await;
        for name in &expected {
            let named: Vec<&Value> = spans.iter().filter(|span| span["name"] == **name).collect();
            table.row(format!("{process}: {name}: one span"), equal(named.len(), 1));
            let of_client =
                named.iter().all(|span| span["traceId"] == TRACE && span["traceState"] == "vendor=1");
            table.row(format!("{process}: {name}: of the client's trace"), ensure(of_client, &named));
        }
        let span = |name: &str| spans.iter().find(|span| span["name"] == name).cloned().unwrap_or_default();
        for (tool, _, kind, code) in calls {
            let span = span(&format!("tools/call {tool}"));
            table.row(format!("{process}: {tool}: its parent"), equal(&span["parentSpanId"], &json!(PARENT)));
            table.row(format!("{process}: {tool}: its kind"), equal(&span["kind"], &json!(2)));
            table.row(format!("{process}: {tool}: its error"), equal(attribute(&span, "error.type"), kind));
            let recorded = attribute(&span, "rpc.response.status_code");
            table.row(format!("{process}: {tool}: its code"), equal(recorded, code));
        }
        let run = &span("run_code")["parentSpanId"];
        table.row(format!("{process}: the run"), equal(run, &span("tools/call run_code")["spanId"]));
    }
    table.finish();
}

#[tokio::test]
#[cfg_attr(
    not(feature = "otel"),
    ignore = "needs a program with the feature otel: make test-quick TESTS=traces"
)]
async fn an_unreachable_collector_delays_nothing() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = daemon(&lockhouse, "http://127.0.0.1:9").await;
    for _ in 0..5 {
        assert_eq!(daemon.http_client(None).run_code("python", "1 + 1").await["value"], 2);
    }
    let ended = daemon.terminate().await;
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}
