//! Tests of faults of an upstream server, and of their effect on the call in which they occur, on the next call, and on
//! the server process.

use std::time::Duration;

use lockhouse_tests::{Table, ensure, is_alive, wait_until};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::{Scripted, processes, tool};

const ECHO: &str = "'echo', {'text': 'well'}";

/// Faults of an upstream server, each with the call that triggers it and the permitted outcomes of that call.
const FAULTS: [(&str, &str, &[&str]); 9] = [
    ("kill -9 during a call", "'kill', {}", &["upstream_unavailable"]),
    ("SIGSTOP during a call", "'stop', {}", &["timeout"]),
    ("a line of garbage", "'garbage', {}", &["after the garbage"]),
    ("10,000 lines of garbage", "'garbage', {'lines': 10000}", &["after the garbage"]),
    ("half a message, then its end", "'half', {}", &["upstream_unavailable"]),
    ("a result of 100 MB", "'large', {'bytes': 100_000_000}", &["result_too_large"]),
    (
        "a result of 100 MB before its id, with another id in it",
        "'late_id', {'bytes': 100_000_000}",
        &["result_too_large"],
    ),
    ("a storm of 10,000 announced changes", "'storm', {'count': 10000}", &["the storm is over"]),
    ("100,000 lines of complaint", "'complain', {'lines': 100000}", &["said"]),
];

#[tokio::test]
async fn a_fault_fails_at_most_its_own_call() {
    let names: Vec<&str> = ["echo", "never"]
        .into_iter()
        .chain(["kill", "stop", "garbage", "half", "large", "late_id", "storm", "complain"])
        .collect();
    let mut table = Table::new("faults of a server: the call, then the next one");
    for (fault, call, expected) in FAULTS {
        // Only this fault is detected by a timeout.
        let keys = if fault.starts_with("SIGSTOP") { "call_timeout_seconds = 3" } else { "" };
        let scripted = Scripted::new(keys, &[], &names);
        let session = scripted.lockhouse.serve().await;
        let before = Scripted::outcome(&session, ECHO).await;
        table.row(format!("{fault}: before it"), ensure(before == "well", before));
        let outcome = Scripted::outcome(&session, call).await;
        let told = outcome.as_str().or_else(|| outcome[0].as_str()).unwrap_or_default();
        table.row(format!("{fault}: its own call"), ensure(expected.contains(&told), &outcome));
        // Lockhouse may have to restart the server first, or to detect that it does not respond.
        let after = wait_until("a call succeeds again", async || {
            let after = Scripted::outcome(&session, ECHO).await;
            (after == "well" || after[0] != "timeout" && after[0] != "upstream_unavailable").then_some(after)
        });
        let after = tokio::time::timeout(Duration::from_secs(60), after).await;
        table.row(
            format!("{fault}: the next call"),
            ensure(matches!(&after, Ok(v) if v == "well"), format!("{after:?}")),
        );
        // A fault that is an error of its call does not restart the server.
        if fault.starts_with("a result") {
            table.row(format!("{fault}: one start"), ensure(scripted.count("starts") == 1, session.log()));
        }
        let started = processes(&session);
        table.row(format!("{fault}: one server runs"), ensure(started.len() == 1, &started));
        let ended = session.close().await;
        let is_well = ended.status == Some(0) && !ended.stderr.contains("panicked");
        table.row(
            format!("{fault}: nothing is left"),
            ensure(is_well && !started.iter().any(|p| is_alive(*p)), ended),
        );
    }
    table.finish();
}

#[tokio::test]
async fn a_call_that_times_out_is_cancelled_at_the_server() {
    let scripted = Scripted::new("call_timeout_seconds = 1", &[], &["never"]);
    let session = scripted.lockhouse.serve().await;
    let outcome = Scripted::outcome(&session, "'never', {}").await;
    assert_eq!(outcome[0], "timeout", "{outcome}");
    wait_until("the server is told", async || (scripted.count("cancelled") == 1).then_some(())).await;
    assert_eq!(scripted.count("starts"), 1, "control: a server that answers pings is not started again");
}

#[tokio::test]
async fn hostile_tool_lists_are_bounded_and_their_references_are_not_fetched() {
    let mut table = Table::new("lists of tools");
    let circle = json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}}, "required": ["tree"],
        "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}}}});
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/schema.json", listener.local_addr().expect("an address"));
    let remote = json!({"type": "object", "properties": {"x": {"$ref": url}}, "$schema": url});
    let deep = |levels| {
        let deeper = |inner, _| json!({"type": "object", "properties": {"x": inner}});
        (0..levels).fold(json!({"type": "string"}), deeper)
    };
    let ambiguous = json!({"properties": {"x": {"$serde_json::private::RawValue": "{\"type\":\"string\"}"}}});
    let with_schema = |schema: &Value| json!({"name": "odd", "inputSchema": schema});
    let rows = [
        ("a schema that refers to itself", vec![with_schema(&circle)], 1),
        ("a schema on the network", vec![with_schema(&remote)], 1),
        ("a schema 50 levels deep", vec![with_schema(&deep(50))], 1),
        ("a schema 300 levels deep is left out", vec![with_schema(&deep(300)), tool("echo", "")], 1),
        (
            "a schema that two readers would read differently",
            vec![with_schema(&ambiguous), tool("echo", "")],
            1,
        ),
        ("a tool of 300 KB", vec![tool("odd", &"x".repeat(300_000)), tool("echo", "")], 1),
        ("10,000 tools", (0..10_000).map(|n| tool(&format!("t{n}"), "")).collect(), 2_000),
        ("a name with control characters", vec![tool("a\u{1b}[2J", ""), tool("echo", "")], 1),
    ];
    for (name, tools, kept) in rows {
        let scripted = Scripted::new("", &[], &[]);
        scripted.set_tools(tools);
        let session = scripted.lockhouse.serve().await;
        let code = "from mcp_tools import scripted\nlen(scripted.list_tools())";
        let listed = Scripted::value(&session, code).await;
        table.row(format!("{name}: {kept} are kept"), ensure(listed == kept, listed));
        let described = "from mcp_tools import scripted, describe\nlen(str(describe('scripted', scripted.list_tools()[0]['name']))) > 10";
        let described = Scripted::value(&session, described).await;
        table.row(format!("{name}: described"), ensure(described == true, described));
        let ended = session.close().await;
        table.row(format!("{name}: ends"), ensure(ended.status == Some(0), ended));
    }
    listener.set_nonblocking(true).expect("a listener");
    table.row(
        "nobody asked for the schema on the network",
        ensure(listener.accept().is_err(), "a connection came"),
    );
    table.finish();
}

#[tokio::test]
async fn unusual_starts_and_exits_of_servers_leave_no_process() {
    let mut table = Table::new("how servers start and end");
    for flag in ["--banner", "--stubborn", "--child"] {
        let scripted = Scripted::new("", &[flag], &["echo"]);
        let session = scripted.lockhouse.serve().await;
        let value = Scripted::outcome(&session, ECHO).await;
        table.row(format!("{flag}: it works"), ensure(value == "well", value));
        let started: Vec<u32> = lockhouse_tests::descendants(session.pid())
            .into_iter()
            .filter(|process| process.command.contains("scripted.py"))
            .map(|process| process.pid)
            .collect();
        let expected = if flag == "--child" { 2 } else { 1 };
        table.row(
            format!("{flag}: control: {expected} processes"),
            ensure(started.len() == expected, &started),
        );
        let ended = session.close().await;
        table.row(format!("{flag}: it ends"), ensure(ended.status == Some(0), ended));
        wait_until("its processes are gone", async || (!started.iter().any(|p| is_alive(*p))).then_some(()))
            .await;
    }
    table.finish();
}

#[tokio::test]
async fn a_slow_reader_loses_only_its_own_answer_and_delays_no_other() {
    let scripted = Scripted::new("", &[], &["echo", "large"]);
    let session = scripted.lockhouse.serve().await;
    // A program that requests many large results and does not read them.
    let hog = "from concurrent.futures import ThreadPoolExecutor\nfrom mcp_tools.scripted import large\n\
        with ThreadPoolExecutor(8) as pool: [pool.submit(large, bytes=1_000_000) for _ in range(64)]\nwhile True: pass";
    let hogging = session.start_code("python", hog);
    wait_until("it asks", async || (scripted.count("calls") >= 8).then_some(())).await;
    let value = Scripted::outcome(&session, ECHO).await;
    assert_eq!(value, "well");
    drop(hogging);
}
