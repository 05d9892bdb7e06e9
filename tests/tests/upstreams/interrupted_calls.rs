//! Tests of programs that end while their calls are in flight: the answer reports the calls that were sent to the
//! upstream server, and not those that were still queued.

use lockhouse_tests::{LANGUAGES, Table, ensure, equal};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::Scripted;

/// Programs (Python, TypeScript) that make three concurrent calls. With `parallel_calls = 1`, Lockhouse sends only one
/// of them to the server.
const THREE_CALLS: [&str; 2] = [
    "import asyncio\nfrom mcp_tools.aio import scripted\nawait asyncio.gather(scripted.never(), scripted.never(), scripted.never())",
    "await Promise.all([scripted.never(), scripted.never(), scripted.never()])",
];
/// Programs (Python, TypeScript) that make four concurrent calls with invalid arguments. The arguments are long, so
/// that their validation takes a moment.
const FOUR_INVALID: [&str; 2] = [
    "import asyncio\nfrom mcp_tools.aio import scripted\nawait asyncio.gather(*(scripted.never(number='one', text='x' * 200_000) for _ in range(4)))",
    "await Promise.all([1, 2, 3, 4].map(() => scripted.never({ number: 'one', text: 'x'.repeat(200_000) })))",
];

fn tool_with(annotations: &Value) -> Value {
    json!({
        "name": "never", "annotations": annotations,
        "inputSchema": {"type": "object", "properties": {"number": {"type": "integer"}, "text": {"type": "string"}}},
    })
}

fn outcomes(answer: &Value) -> Vec<&str> {
    let calls = answer["calls"].as_array().expect("calls");
    let mut outcomes: Vec<&str> = calls.iter().filter_map(|call| call["outcome"].as_str()).collect();
    outcomes.sort_unstable();
    outcomes
}

#[tokio::test]
async fn sent_calls_are_reported_and_queued_calls_are_not() {
    let rows = [
        (json!({"readOnlyHint": false}), "1 call that may change something was already made: scripted.never"),
        (
            json!({}),
            "1 call was already made whose server does not declare whether it changes anything: scripted.never",
        ),
        (json!({"readOnlyHint": true}), ""),
    ];
    let mut table = Table::new("calls that timed out");
    for (annotations, words) in rows {
        let scripted = Scripted::new("parallel_calls = 1", &[], &[]);
        scripted.set_tools(vec![tool_with(&annotations)]);
        let session = scripted.lockhouse.serve().await;
        session.all_connected().await;
        for (number, language) in LANGUAGES.into_iter().enumerate() {
            let name = |of: &str| format!("{annotations}, {language}: {of}");
            let before = scripted.lockhouse.audit().len();
            let arguments = json!({"language": language, "code": THREE_CALLS[number], "timeout_s": 2});
            let answer = session.run_with(arguments).await;
            table.row(name("it was stopped"), equal(answer["status"].as_str(), Some("timeout")));
            table.row(name("what the server got"), equal(scripted.count("calls"), number + 1));
            table.row(name("outcomes"), equal(outcomes(&answer), vec!["not_sent", "not_sent", "unknown"]));
            let told = answer["error"]["changed"].as_str().unwrap_or_default();
            let fits = if words.is_empty() { told.is_empty() } else { told.starts_with(words) };
            let is_unknown = words.is_empty() || told.contains("outcome unknown");
            table.row(name("what may have changed"), ensure(fits && is_unknown, &answer["error"]));
            let changing = |call: &&Value| call["changes"] == true;
            let changing = answer["calls"].as_array().expect("calls").iter().filter(changing).count();
            table.row(
                name("calls that may change something"),
                equal(changing, usize::from(!words.is_empty())),
            );
            let records = &scripted.lockhouse.audit()[before..];
            let of = |key: &str, value: &str| records.iter().filter(|record| record[key] == value).count();
            table.row(
                name("the log: calls, and outcomes without a call"),
                equal((of("event", "call"), of("outcome", "unknown"), of("outcome", "not_sent")), (1, 1, 2)),
            );
        }
    }
    table.finish();
}

#[tokio::test]
async fn invalid_concurrent_calls_are_not_reported_as_sent() {
    let scripted = Scripted::new("", &[], &[]);
    scripted.set_tools(vec![tool_with(&json!({"readOnlyHint": false}))]);
    let session = scripted.lockhouse.serve().await;
    session.all_connected().await;
    let mut table = Table::new("four parallel calls with invalid arguments");
    for (language, code) in LANGUAGES.into_iter().zip(FOUR_INVALID) {
        let answer = session.run_code(language, code).await;
        table.row(
            format!("{language}: the error"),
            equal(answer["error"]["code"].as_str(), Some("invalid_arguments")),
        );
        let unsent =
            outcomes(&answer).iter().all(|outcome| ["invalid_arguments", "not_sent"].contains(outcome));
        table.row(format!("{language}: outcomes"), ensure(unsent, &answer["calls"]));
        table.row(
            format!("{language}: nothing may have changed"),
            equal(answer["error"].get("changed"), None),
        );
        table.row(format!("{language}: the server got nothing"), equal(scripted.count("calls"), 0));
    }
    table.finish();
}
