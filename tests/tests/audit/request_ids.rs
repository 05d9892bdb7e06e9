//! Tests of the ids that AI clients give their requests, in the audit log and in the service log: `X-Correlation-ID`, `X-Request-ID`
//! and `traceparent`.

use lockhouse_tests::{Daemon, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::audit::assert_verified;

/// A configuration without authentication over HTTP.
const OPEN: &str = "[http]\nauth = \"none\"\n";
const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Returns the last record of this event.
fn last(lockhouse: &Lockhouse, event: &str) -> Value {
    let records = lockhouse.records();
    records.into_iter().rfind(|record| record["event"] == event).unwrap_or_default()
}

#[tokio::test]
async fn the_ids_of_a_request_over_http_are_recorded_as_claims() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let (long, longer) = ("a".repeat(128), "a".repeat(129));
    let mut table = Table::new("ids of requests");
    for (name, headers, claimed) in [
        ("none", vec![], json!(null)),
        (
            "all",
            vec![("X-Correlation-ID", "order-7"), ("X-Request-ID", "r/1"), ("traceparent", TRACE)],
            json!({"correlation_id": "order-7", "request_id": "r/1", "traceparent": TRACE}),
        ),
        ("one", vec![("x-request-id", "\"}]")], json!({"request_id": "\"}]"})),
        ("the longest", vec![("x-request-id", &*long)], json!({"request_id": long})),
        (
            "too long",
            vec![("x-request-id", &*longer), ("x-correlation-id", "b")],
            json!({"correlation_id": "b"}),
        ),
        ("with a space", vec![("x-request-id", "a b")], json!(null)),
        ("not ASCII", vec![("x-request-id", "\u{e4}")], json!(null)),
    ] {
        let client =
            headers.iter().fold(daemon.http_client(None), |client, (name, value)| client.with(name, value));
        let answer = client.run_code("python", "1").await;
        let record = last(&lockhouse, "execution");
        table.row(
            format!("{name}: the run"),
            ensure(record["execution"] == answer["execution"], (&answer, &record)),
        );
        table.row(format!("{name}: the record"), equal(record["claimed"].clone(), claimed));
    }
    let refused = daemon.http_client(None).with("x-correlation-id", "order-8").run_code("python", " ").await;
    let record = last(&lockhouse, "refusal");
    table.row("a refused run", ensure(record["execution"] == refused["execution"], &record));
    table.row("its claim", equal(record["claimed"].clone(), json!({"correlation_id": "order-8"})));
    table.finish();
    assert_eq!(daemon.terminate().await.status, Some(0));
    assert_verified(&lockhouse);
    let printed = lockhouse.run(&["audit", "query", "--event", "refusal"]).stdout;
    assert!(printed.contains("correlation_id order-8"), "{printed}");
    let events = lockhouse.run(&["audit", "export", "--format", "ocsf"]).stdout;
    let claims = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event"));
    let claims: Vec<Value> = claims.map(|event| event["unmapped"]["claimed"].clone()).collect();
    assert!(claims.contains(&json!({"correlation_id": "b"})) && claims.contains(&json!(null)), "{claims:?}");
}

#[tokio::test]
async fn the_ids_of_a_request_are_in_its_log_lines_and_in_audit_show() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("LOCKHOUSE_LOG", "debug");
    let daemon = Daemon::open(command).await;
    let client = daemon.http_client(None).with("x-correlation-id", "order-7");
    let answer = client.run_code("python", "1").await;
    let log = daemon.wait_for_log("correlation_id=\"order-7\"").await;
    assert!(log.contains("correlation_id=\"order-7\""), "{log}");
    let id = answer["execution"].as_str().unwrap();
    let shown = lockhouse.run(&["audit", "show", id]).stdout;
    assert!(shown.contains("claimed    correlation_id order-7"), "{shown}");
}

/// `traceparent` of `_meta` is read with any transport, and has precedence over the header.
#[tokio::test]
async fn the_trace_in_the_meta_of_a_request_is_recorded() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let client = daemon.http_client(None).with("traceparent", "of-the-header");
    let run = |meta: Value| json!({"name": "run_code", "arguments": {"language": "python", "code": "1"}, "_meta": meta});
    for (meta, claimed) in [(json!({"traceparent": TRACE}), TRACE), (json!({}), "of-the-header")] {
        client.post(&client.message("tools/call", run(meta))).await;
        assert_eq!(last(&lockhouse, "execution")["claimed"], json!({"traceparent": claimed}));
    }
}
