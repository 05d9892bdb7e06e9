//! Tests of concurrent calls to one upstream server: calls above the limit `parallel_calls` wait in a queue.

use lockhouse_tests::{Table, ensure};

use crate::upstreams::scripted_server::Scripted;

/// Returns a Python program that makes `calls` concurrent calls of 0.3 s each, and returns how often each outcome
/// occurred.
fn program(calls: usize) -> String {
    format!(
        "from collections import Counter\nfrom concurrent.futures import ThreadPoolExecutor\n\
        from mcp_tools import ToolError, call_tool\n\
        def call(_):\n    try: return call_tool('scripted', 'sleep', {{'seconds': 0.3}})\n    except ToolError as e: return [e.code, e.retryable][0] + (' again' if e.retryable else '')\n\
        with ThreadPoolExecutor({calls}) as pool: r = dict(Counter(pool.map(call, range({calls}))))\nr"
    )
}

#[tokio::test]
async fn time_in_the_queue_does_not_count_towards_the_call_timeout() {
    let mut table = Table::new("12 concurrent calls of 0.3 s");
    for (keys, expected) in [
        // The last call waits longer than its timeout, which begins when it is sent.
        ("parallel_calls = 2\ncall_timeout_seconds = 1", serde_json::json!({"awake": 12})),
        ("parallel_calls = 1\nqueue = 3", serde_json::json!({"awake": 4, "upstream_unavailable again": 8})),
    ] {
        let scripted = Scripted::new(keys, &[], &["sleep"]);
        let session = scripted.lockhouse.serve().await;
        let outcomes = Scripted::value(&session, &program(12)).await;
        table.row(keys.replace('\n', ", "), ensure(outcomes == expected, outcomes));
    }
    table.finish();
}

#[tokio::test]
async fn a_queued_call_times_out_and_is_not_sent() {
    let scripted = Scripted::new("parallel_calls = 1\nqueue_timeout_seconds = 1", &[], &["echo", "sleep"]);
    let session = scripted.lockhouse.serve().await;
    let hogging = session.start_code("python", "from mcp_tools.scripted import sleep\nsleep(seconds=20)");
    lockhouse_tests::wait_until("it is called", async || (scripted.count("calls") == 1).then_some(())).await;
    let outcome = Scripted::outcome(&session, "'echo', {'text': 'x'}").await;
    assert_eq!(outcome[0], "upstream_unavailable", "{outcome}");
    assert!(outcome[1].as_str().is_some_and(|told| told.contains("the call was not made")), "{outcome}");
    assert_eq!(scripted.count("calls"), 1);
    drop(hogging);
}
