//! Many calls at a time to one server.

use lockhouse_tests::{Table, ensure};

use crate::scripted::Scripted;

/// So many calls of 0.3 s at a time, and how many of them came to what.
fn program(calls: usize) -> String {
    format!(
        "from collections import Counter\nfrom concurrent.futures import ThreadPoolExecutor\n\
        from mcp_tools import ToolError, call_tool\n\
        def call(_):\n    try: return call_tool('scripted', 'sleep', {{'seconds': 0.3}})\n    except ToolError as e: return [e.code, e.retryable][0] + (' again' if e.retryable else '')\n\
        with ThreadPoolExecutor({calls}) as pool: r = dict(Counter(pool.map(call, range({calls}))))\nr"
    )
}

#[tokio::test]
async fn calls_beyond_the_limit_wait_for_their_turn_without_losing_time_of_their_own() {
    let mut table = Table::new("12 calls of 0.3 s at one time");
    for (keys, expected) in [
        // The last one waits longer than a call may take.
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
async fn waiting_ends_on_a_clock_of_its_own_and_the_call_is_not_made() {
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
