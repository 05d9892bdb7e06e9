//! Tests of upstream servers that flood Lockhouse with messages that it did not request: Lockhouse disconnects them,
//! and its memory and other upstream servers are not affected.

use std::path::Path;
use std::sync::{Condvar, Mutex};

use lockhouse_tests::{HttpAnswer, HttpServer, Lockhouse, Session, Table, ensure, is_alive, wait_until};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::{Scripted, processes};

const MIB: usize = 1024 * 1024;
/// The maximum resident memory of the supervisor during a flood, in KiB.
const MEMORY_KIB_MAX: u64 = 200 * 1024;
/// The reason that Lockhouse states when it disconnects a flooding server.
const TOO_MUCH: &str = "it exceeded the limit for unsolicited messages";
const LONG_NAME: &str = "whose `id` or `method` is longer than 256 bytes";

/// A kind of flood: its name, the arguments for the server's tool `flood`, and the expected reason in the log when
/// Lockhouse disconnects the server.
type Flood = (&'static str, Value, &'static str);

fn flood(what: &str, bytes: usize, count: usize) -> Value {
    json!({"what": what, "bytes": bytes, "count": count})
}

fn large() -> Vec<Flood> {
    let line = flood("line", 2_000 * MIB, 1);
    let mut later = line.clone();
    later["after"] = true.into();
    vec![
        ("an id of 900 KB", flood("ids", 900_000, 1), LONG_NAME),
        ("1 MB of empty lists, again and again", flood("nodes", 1_000_000, 64), TOO_MUCH),
        ("log messages of 50 KB", flood("logs", 50_000, 1_000), TOO_MUCH),
        ("progress of nobody's call", flood("progress", 60_000, 1_000), TOO_MUCH),
        ("answers to nothing", flood("answers", 2_000_000, 64), TOO_MUCH),
        ("garbage", flood("garbage", 100_000, 1_000), TOO_MUCH),
        ("a line without an end, during a call", line, "a line of more than 256 MiB beyond the limit"),
        ("a line without an end, that nobody waits for", later, "an unsolicited line of more than 1 MiB"),
    ]
}

fn small() -> Vec<Flood> {
    vec![
        ("requests", flood("requests", 0, 100_000), ""),
        ("log messages", flood("logs", 10, 200_000), TOO_MUCH),
        ("notifications", flood("updates", 10, 200_000), TOO_MUCH),
        ("1.5 MB of log messages of 240 values", flood("nodes", 720, 1_500), TOO_MUCH),
    ]
}

/// Returns a Lockhouse test fixture with two upstream servers: `scripted`, which a test lets flood Lockhouse, and
/// `honest`, which behaves normally.
fn both() -> Scripted {
    let honest = tempfile::tempdir().expect("a directory").keep();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/scripted.py");
    let keys = format!(
        "call_timeout_seconds = 30\n[servers.honest]\ncommand = \"python3\"\nargs = {}\n",
        json!([script, honest])
    );
    let Scripted { lockhouse, place, entry } = Scripted::new(&keys, &[], &["echo", "flood", "large"]);
    let policy = "version = 1\n[servers.scripted]\nallow = [\"*\"]\n[servers.honest]\nallow = [\"*\"]\n";
    Scripted { lockhouse: lockhouse.policy(policy), place, entry }
}

const HONEST: &str = "from mcp_tools.honest import echo\necho(text='well')";

/// Returns the peak resident memory of the supervisor in KiB.
fn peak_kib(session: &Session) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[tokio::test]
async fn a_server_that_floods_with_large_messages_is_disconnected_and_others_continue() {
    check_disconnected(large()).await;
}

#[tokio::test]
async fn a_server_that_floods_with_many_messages_is_disconnected_and_others_continue() {
    check_disconnected(small()).await;
}

async fn check_disconnected(floods: Vec<Flood>) {
    let mut table = Table::new("unsolicited messages");
    for (what, flood, why) in floods {
        let scripted = both();
        let session = scripted.lockhouse.serve().await;
        let before = Scripted::outcome(&session, "'echo', {'text': 'well'}").await;
        table.row(format!("{what}: control: before it"), ensure(before == "well", before));
        let call = format!("'flood', {}", to_python_literal(&flood));
        let outcome = Scripted::outcome(&session, &call).await;
        let is_after = flood["after"] == true;
        let expected = if is_after { outcome == "soon" } else { outcome[0] == "upstream_unavailable" };
        table.row(format!("{what}: its own call"), ensure(expected, &outcome));
        let said = wait_until("it is disconnected", async || {
            let said = session.log();
            said.contains("the connection ended: it ").then_some(said)
        });
        let said = said.await;
        table.row(format!("{what}: why is told"), ensure(said.contains(why), &said));
        wait_until("its process is gone", async || (processes(&session).len() == 1).then_some(())).await;
        // Lockhouse does not restart the server at once, and a call gets the reason.
        let next = Scripted::outcome(&session, "'echo', {'text': 'well'}").await;
        let is_told =
            next[0] == "upstream_unavailable" && next[1].as_str().is_some_and(|told| told.contains(why));
        table.row(format!("{what}: the next call is told why"), ensure(is_told, &next));
        table.row(format!("{what}: it is not started again"), ensure(scripted.count("starts") == 1, &said));
        let honest = Scripted::value(&session, HONEST).await;
        table.row(format!("{what}: an honest server"), ensure(honest == "well", honest));
        let peak = peak_kib(&session);
        table.row(format!("{what}: memory"), ensure(peak < MEMORY_KIB_MAX, format!("{peak} KiB")));
        let logs = scripted.lockhouse.run(&["server", "logs", "scripted"]);
        let is_kept = logs.stdout.contains("Lockhouse disconnected the server") && logs.stdout.contains(why);
        table.row(format!("{what}: `server logs`"), ensure(is_kept, &logs));
        let ended = session.close().await;
        table.row(format!("{what}: ends"), ensure(ended.status == Some(0), ended));
    }
    table.finish();
}

/// Formats a JSON value as a Python literal.
fn to_python_literal(value: &Value) -> String {
    value.to_string().replace("true", "True").replace("false", "False")
}

#[tokio::test]
async fn messages_of_honest_servers_are_within_the_limits() {
    let scripted = both();
    let session = scripted.lockhouse.serve().await;
    let mut table = Table::new("many messages within the limits");
    for (what, flood) in [
        ("1,000 log messages", json!({"what": "logs", "bytes": 200, "count": 1_000})),
        ("a log message of 60 KB", json!({"what": "logs", "bytes": 60_000})),
        ("a log message that is too large is dropped", json!({"what": "logs", "bytes": 500_000})),
        ("300 log messages of 60 values", json!({"what": "nodes", "bytes": 180, "count": 300})),
        ("300 log messages of too many values", json!({"what": "nodes", "bytes": 900, "count": 300})),
        ("1,000 announcements", json!({"what": "updates", "bytes": 50, "count": 1_000})),
        ("20,000 notes of progress", json!({"what": "own progress", "count": 20_000})),
        ("200 requests", json!({"what": "requests", "count": 200})),
        ("stderr without end of line", json!({"what": "stderr", "bytes": 2_000_000})),
        ("stderr of many lines", json!({"what": "stderr", "bytes": 50, "count": 20_000})),
    ] {
        let outcome = Scripted::outcome(&session, &format!("'flood', {flood}")).await;
        table.row(what, ensure(outcome == "flooded", outcome));
    }
    let large = "from mcp_tools.scripted import large\nlen(large(bytes=7_000_000))";
    let large = Scripted::value(&session, large).await;
    table.row("a result of 7 MB", ensure(large.as_u64().is_some_and(|length| length > 6_900_000), large));
    table.row("one start", ensure(scripted.count("starts") == 1, session.log()));
    table.finish();
}

#[tokio::test]
async fn an_oversized_request_of_a_server_is_answered_with_an_error() {
    let scripted = Scripted::new("", &[], &["flood"]);
    let session = scripted.lockhouse.serve().await;
    let ask = async |count: usize| {
        let flood = flood("many values", 0, count);
        Scripted::outcome(&session, &format!("'flood', {flood}")).await
    };
    assert_eq!(ask(100).await, "flooded");
    assert_eq!(ask(5_000).await, "flooded");
    wait_until("it is answered", async || (scripted.count("errors") > 0).then_some(())).await;
    let errors = std::fs::read_to_string(scripted.place.join("errors")).expect("a file");
    assert_eq!(errors.lines().count(), 1, "control: a small request is answered with a result: {errors}");
    assert!(errors.contains("4,096 JSON values") && errors.contains("-32600"), "{errors}");
    assert_eq!(scripted.count("starts"), 1);
}

#[tokio::test]
async fn a_list_of_tiny_values_takes_little_memory() {
    let scripted = Scripted::new("", &["--zeros"], &[]);
    let session = scripted.lockhouse.serve().await;
    let told = wait_until("the list is read", async || {
        let said = session.log();
        said.contains("it offers more tools than the limit").then_some(said)
    });
    let told = told.await;
    assert!(told.contains("skipped 10000 tools"), "{told}");
    let peak = peak_kib(&session);
    assert!(peak < MEMORY_KIB_MAX, "{peak} KiB");
}

/// Returns the HTTP response of an upstream server to a call: an event stream with the events `filler`, followed by the
/// MCP response to the call.
fn stream(request_id: &Value, filler: &str) -> HttpAnswer {
    let text = json!({"content": [{"type": "text", "text": "seen"}]});
    let answer = json!({"jsonrpc": "2.0", "id": request_id, "result": text});
    let events = format!("{filler}data: {answer}\n\n");
    HttpAnswer::Full(200, vec![("Content-Type".into(), "text/event-stream".into())], events)
}

#[tokio::test]
async fn a_flooding_event_stream_is_closed_with_the_reason() {
    let message = |data: &str| format!("data: {data}\n\n");
    let log = |data: &Value| {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": data}});
        message(&log.to_string())
    };
    let ask = |id: &str| message(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}).to_string());
    let mut table = Table::new("streams of events");
    for (what, filler, why) in [
        ("nothing besides", String::new(), None),
        ("100 log messages", log(&json!("x")).repeat(100), None),
        ("comments", ": still here\n\n".repeat(1_000), None),
        ("a log message that is too large", log(&json!("x".repeat(500_000))), None),
        ("small log messages", log(&json!("x")).repeat(50_000), Some(TOO_MUCH)),
        ("1 MB of empty lists", log(&json!(vec![json!([]); 300_000])).repeat(8), Some(TOO_MUCH)),
        ("an id of 900 KB", ask(&"x".repeat(900_000)), Some(LONG_NAME)),
        ("comments without end", format!(": {}\n", "x".repeat(60)).repeat(8 * MIB / 64), Some(TOO_MUCH)),
        ("fields that mean nothing", format!("id: {}\n\n", "x".repeat(6 * MIB)), Some(TOO_MUCH)),
    ] {
        let filler = filler.clone();
        let server = HttpServer::start(move |request| match request.as_mcp(false) {
            Some(answer) => answer,
            None => stream(&request.message()["id"], &filler),
        });
        let config = format!("[servers.web]\nurl = \"{}\"\n", server.url("/mcp"));
        let policy = "version = 1\n[servers.web]\nallow = [\"*\"]\n";
        let session = Lockhouse::new().config(&config).policy(policy).serve().await;
        let code = "from mcp_tools import ToolError, call_tool\n\
            try: r = call_tool('web', 'look', {'at': 'x'})\nexcept ToolError as e: r = [e.code, str(e)]\nr";
        let outcome = Scripted::value(&session, code).await;
        match why {
            None => table.row(format!("{what}: answered"), ensure(outcome == "seen", outcome)),
            Some(why) => {
                table.row(
                    format!("{what}: its own call"),
                    ensure(outcome[0] == "upstream_unavailable", outcome),
                );
                let told = wait_until("it is given up", async || session.log().contains(why).then_some(()));
                told.await;
                let next = Scripted::value(&session, code).await;
                let is_told = next[1].as_str().is_some_and(|told| told.contains(why));
                table.row(format!("{what}: the next call is told why"), ensure(is_told, next));
            }
        }
        let peak = peak_kib(&session);
        table.row(format!("{what}: memory"), ensure(peak < MEMORY_KIB_MAX, format!("{peak} KiB")));
        let pid = session.pid();
        let ended = session.close().await;
        table.row(format!("{what}: ends"), ensure(ended.status == Some(0) && !is_alive(pid), ended));
    }
    table.finish();
}

/// A function that returns the server-sent events that an HTTP upstream server sends on its standalone stream
/// (the response to GET) when its tool is called. Its argument is the id of the call.
type OnCall = fn(&Value) -> String;

/// Starts an HTTP upstream server. It answers a call whose argument `at` is `x` with the events of `on_call`, on its
/// standalone event stream (the response to GET). It answers every other call in the HTTP response to that call.
fn server_with_standalone_stream(on_call: OnCall) -> HttpServer {
    let (called, is_called) = (Mutex::new(None::<Value>), Condvar::new());
    HttpServer::start(move |request| {
        let message = request.message();
        if request.method == "GET" {
            let mut called = is_called.wait_while(called.lock().unwrap(), |called| called.is_none()).unwrap();
            let id = called.take().unwrap();
            return HttpAnswer::Full(
                200,
                vec![("Content-Type".into(), "text/event-stream".into())],
                on_call(&id),
            );
        }
        if request.rpc() == "tools/call" && message["params"]["arguments"]["at"] == "x" {
            *called.lock().unwrap() = Some(message["id"].clone());
            is_called.notify_all();
            return HttpAnswer::status(202);
        }
        match request.as_mcp(true) {
            Some(answer) if request.rpc() == "initialize" => answer.with("Mcp-Session-Id", "a-session"),
            Some(answer) => answer,
            None => stream(&message["id"], ""),
        }
    })
}

#[tokio::test]
async fn an_oversized_event_on_the_standalone_stream_fails_its_call_or_the_connection() {
    let mut table = Table::new("events on the standalone stream during a call");
    let rows: [(&str, OnCall, &str, &str); 3] = [
        ("control: the answer", |id| event(id, 1_000), "seen", ""),
        // Far more than the limit on unsolicited messages.
        ("an answer over the limit", |id| event(id, 16 * MIB), "result_too_large", ""),
        (
            "events over the limit that name no call",
            |_| event(&json!("no-call"), MIB).repeat(16),
            "upstream_unavailable",
            "it sent an event over the limit of one message that answers no request",
        ),
    ];
    for (what, on_call, expected, why) in rows {
        let server = server_with_standalone_stream(on_call);
        let limits = "[limits]\nframe_kib = 64\ncode_kib = 1\n";
        let config =
            format!("{limits}[servers.web]\nurl = \"{}\"\ncall_timeout_seconds = 20\n", server.url("/mcp"));
        let policy = "version = 1\n[servers.web]\nallow = [\"*\"]\n";
        let session = Lockhouse::new().config(&config).policy(policy).serve().await;
        let look = async |at: &str| {
            let code = format!(
                "from mcp_tools import ToolError, call_tool\n\
                 try: r = call_tool('web', 'look', {{'at': '{at}'}})\nexcept ToolError as e: r = e.code\nr"
            );
            Scripted::value(&session, &code).await
        };
        let outcome = look("x").await;
        table.row(what, ensure(outcome == expected, outcome));
        if why.is_empty() {
            let next = look("y").await;
            table.row(format!("{what}: the next call"), ensure(next == "seen", next));
            let said = session.log();
            table
                .row(format!("{what}: the connection"), ensure(!said.contains("the connection ended"), said));
        } else {
            let told = wait_until("it is told", async || session.log().contains(why).then_some(()));
            told.await;
        }
        session.close().await;
    }
    table.finish();
}

/// Returns a server-sent event with an MCP response of about this many bytes to the request `id`.
fn event(id: &Value, bytes: usize) -> String {
    let mut content = vec![json!({"type": "text", "text": "seen"})];
    if bytes > 1_000 {
        content.push(json!({"type": "text", "text": "x".repeat(bytes)}));
    }
    format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}\n\n", json!({"content": content}))
}
