//! Tests of upstream servers over streamable HTTP that programs call.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use lockhouse_tests::{HttpAnswer, HttpRequest, HttpServer, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

const POLICY: &str = "version = 1\n[servers.web]\nallow = [\"*\"]\n";
/// A configuration that limits a message between supervisor and worker to 64 KiB (`frame_kib`). The limit for a message
/// of an upstream server is three times as high; a message of `OVER` bytes exceeds it.
const SMALL: &str = "[limits]\nframe_kib = 64\ncode_kib = 1\n";
const OVER: usize = 64 * 1024 * 3 + 1;
/// The source of the Python function `look`, which calls the upstream tool `look`. It returns the result of the call,
/// or, if the call fails, a list with the code, message and `retryable` of the error.
const LOOK: &str = "from mcp_tools import ToolError, call_tool\n\
    def look(at):\n    try: return call_tool('web', 'look', {'at': at})\n    except ToolError as e: return [e.code, str(e), e.retryable]\n";

fn lockhouse(url: &str, more: &str) -> Lockhouse {
    let config = format!("{SMALL}[servers.web]\nurl = \"{url}\"\nstart_timeout_seconds = 5\n{more}\n");
    let lockhouse = Lockhouse::new().config(&config).policy(POLICY);
    lockhouse.file("config/lockhouse/token", "SEKRET-TOKEN");
    lockhouse
}

/// Runs a Python program that can call `look`, and returns its value, or its error if it has no value.
fn value(lockhouse: &Lockhouse, program: &str) -> Value {
    let mut answer = lockhouse.answer("python", &format!("{LOOK}{program}"));
    let error = answer["error"].take();
    let value = answer["value"].take();
    if value.is_null() { error } else { value }
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn target(request: &HttpRequest) -> String {
    request.message()["params"]["arguments"]["at"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn both_eras_answer_in_json_and_in_events_and_lose_nothing() {
    let mut table = Table::new("servers over HTTP");
    for is_older in [false, true] {
        for as_events in [false, true] {
            let server = HttpServer::start(move |request| {
                request.as_mcp(is_older).unwrap_or_else(|| {
                    let block = json!({"type": "text", "text": target(request), "ours": {"kept": [1.0, null]}});
                    let result = request.result(&json!({"structuredContent": block, "content": [], "resultType": "complete"}));
                    let notice = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
                    if as_events { HttpAnswer::events(&[notice, result]) } else { HttpAnswer::json(200, &result) }
                })
            });
            let lockhouse = lockhouse(
                &server.url("/mcp"),
                "headers = {X-Team = 'north'}\nbearer_token = '${file:token}'",
            );
            let name = format!(
                "{} in {}",
                if is_older { "2025-06-18" } else { "2026-07-28" },
                if as_events { "events" } else { "JSON" }
            );
            let whole = json!({"type": "text", "text": "ü", "ours": {"kept": [1.0, null]}});
            table.row(format!("{name}: the result"), equal(&value(&lockhouse, "look('ü')"), &whole));
            let requests = server.requests();
            let carries = |name: &str, value: &str| {
                requests.iter().all(|r| r.headers.get(name).is_some_and(|v| v == value))
            };
            table.row(format!("{name}: headers"), ensure(carries("x-team", "north"), &requests));
            table.row(
                format!("{name}: token"),
                ensure(carries("authorization", "Bearer SEKRET-TOKEN"), &requests),
            );
            let call = requests.iter().find(|request| request.rpc() == "tools/call").expect("a call");
            let version = call.headers.get("mcp-protocol-version").map(String::as_str);
            table.row(
                format!("{name}: era"),
                equal(&version, &Some(if is_older { "2025-06-18" } else { "2026-07-28" })),
            );
            let named = call.headers.get("mcp-name").map(String::as_str);
            table.row(format!("{name}: name"), equal(&named, &(!is_older).then_some("look")));
        }
    }
    table.finish();
}

#[test]
fn a_failed_call_reports_its_reason_and_the_next_call_works() {
    let server = HttpServer::start(|request| {
        request.as_mcp(false).unwrap_or_else(|| {
            let result = |text: &str| request.result(&self::text(text));
            let unauthorized = |status| HttpAnswer::json(status, &json!({"error": "SAID-BY-SERVER"}));
            match target(request).as_str() {
                "large" => HttpAnswer::json(200, &result(&"x".repeat(OVER))),
                "large event" => HttpAnswer::events(&[result(&"x".repeat(OVER))]),
                "cut off" => HttpAnswer::CutOff("data: {\"jsonrpc\": \"2.0\", \"id\"".into()),
                "no json" => HttpAnswer::Full(
                    200,
                    vec![("Content-Type".into(), "application/json".into())],
                    "{".into(),
                ),
                "page" => HttpAnswer::Full(
                    200,
                    vec![("Content-Type".into(), "text/html".into())],
                    "SAID-BY-SERVER".into(),
                ),
                "broken" => HttpAnswer::Full(500, Vec::new(), "SAID-BY-SERVER".into()),
                "busy" => HttpAnswer::status(429),
                "token" => unauthorized(401).with("WWW-Authenticate", "Bearer error=\"SAID-BY-SERVER\""),
                "scope" => unauthorized(403).with(
                    "WWW-Authenticate",
                    "Bearer error=\"insufficient_scope\", scope=\"SAID-BY-SERVER\"",
                ),
                "never" => HttpAnswer::NoAnswer,
                other => HttpAnswer::json(200, &result(other)),
            }
        })
    });
    let lockhouse = lockhouse(&server.url("/mcp"), "call_timeout_seconds = 2");
    let rows = [
        ("large", "result_too_large", "exceeds the limit"),
        ("large event", "result_too_large", "exceeds the limit"),
        ("cut off", "upstream_unavailable", "ended during the call"),
        ("no json", "tool_failed", "not valid JSON"),
        ("page", "upstream_unavailable", "not that of an MCP endpoint"),
        ("broken", "upstream_unavailable", "HTTP status 500"),
        ("busy", "upstream_unavailable", "HTTP 429"),
        ("token", "upstream_unavailable", "run `lockhouse server login web`"),
        ("scope", "upstream_unavailable", "to ask for more, run `lockhouse server login web`"),
        ("never", "timeout", "did not answer within 2 s"),
    ];
    let mut table = Table::new("calls over HTTP");
    let calls = rows.map(|(at, ..)| format!("[look({at:?}), look('fine')]")).join(", ");
    let outcomes = value(&lockhouse, &format!("[{calls}]"));
    for (index, (name, code, words)) in rows.into_iter().enumerate() {
        let (outcome, next) = (&outcomes[index][0], &outcomes[index][1]);
        let told = outcome[1].as_str().is_some_and(|text| text.contains(words) && !text.contains("SAID"));
        table.row(name, ensure(outcome[0] == code && told && next == "fine", (outcome, next)));
    }
    table.finish();
}

#[test]
fn an_unusable_server_is_reported_without_repeating_its_text() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}/mcp", listener.local_addr().expect("an address"))
    };
    let old = HttpServer::start(|request| match request.method.as_str() {
        "GET" => HttpAnswer::Full(
            200,
            vec![("Content-Type".into(), "text/event-stream".into())],
            "event: endpoint\ndata: /messages\n\n".into(),
        ),
        _ => HttpAnswer::status(405),
    });
    let silent = HttpServer::start(|_| HttpAnswer::NoAnswer);
    let elsewhere = HttpServer::start(|_| HttpAnswer::status(404));
    let guarded = HttpServer::start(|_| HttpAnswer::Full(401, Vec::new(), "SAID-BY-SERVER".into()));
    let mut table = Table::new("servers over HTTP that cannot be used");
    for (name, url, more, words) in [
        ("connection refused", closed, "", "cannot connect to 127.0.0.1:"),
        ("not TLS", guarded.url("/mcp").replace("http:", "https:"), "", "not accepted as TLS"),
        ("an /sse URL", elsewhere.url("/sse"), "", "deprecated"),
        ("the old transport", old.url("/events"), "", "/mcp in place of /sse"),
        ("no answer", silent.url("/mcp"), "", "did not finish its start within 5 s"),
        ("nothing there", elsewhere.url("/nowhere"), "", "no MCP endpoint at its URL"),
        ("no token", guarded.url("/mcp"), "", "run `lockhouse server login web`"),
        (
            "a wrong token",
            guarded.url("/mcp"),
            "bearer_token = '${file:token}'",
            "refuses the credentials that are configured",
        ),
        (
            "a header of ours",
            guarded.url("/mcp"),
            "headers = {Mcp-Session-Id = 'x'}",
            "one that Lockhouse sets itself",
        ),
    ] {
        let outcome = value(&lockhouse(&url, more), "look('fine')");
        let told = outcome[1].as_str().is_some_and(|text| text.contains(words) && !text.contains("SAID"));
        table.row(name, ensure(outcome[0] == "upstream_unavailable" && told, &outcome));
    }
    table.finish();
}

#[test]
fn redirects_are_followed_only_within_the_same_origin() {
    let answer = |request: &HttpRequest| {
        request.as_mcp(false).unwrap_or_else(|| HttpAnswer::json(200, &request.result(&text("there"))))
    };
    let foreign = HttpServer::start(answer);
    let target = foreign.url("/mcp");
    let server = HttpServer::start(move |request| match request.path.as_str() {
        "/home" => HttpAnswer::status(307).with("Location", "/mcp"),
        "/away" => HttpAnswer::status(307).with("Location", &target),
        "/lossy" => HttpAnswer::status(302).with("Location", "/mcp"),
        _ => answer(request),
    });
    let more = "headers = {X-Key = 'SEKRET'}";
    let mut table = Table::new("redirects");
    let home = value(&lockhouse(&server.url("/home"), more), "look('x')");
    table.row("to the same origin", equal(&home, &json!("there")));
    for path in ["/away", "/lossy"] {
        let outcome = value(&lockhouse(&server.url(path), more), "look('x')");
        let told = outcome[1].as_str().is_some_and(|text| text.contains("redirects to another address"));
        table.row(format!("{path} is not followed"), ensure(told, &outcome));
    }
    table.row("nothing reached the other origin", ensure(foreign.requests().is_empty(), foreign.requests()));
    table.finish();
}

/// The refusal of a call by a server that does not know its session: the HTTP status, and the body, in which `ID` stands for
/// the id of the call.
type Refusal = (u16, &'static str);

const NO_SESSION: &str = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#;

/// Starts a server that assigns the sessions `s1`, `s2` and so on, and refuses calls of the session `s1`, or of all sessions
/// if `always`.
fn forgetful_server(refusal: Refusal, always: bool) -> HttpServer {
    let sessions = AtomicUsize::new(0);
    HttpServer::start(move |request| {
        let session = request.headers.get("mcp-session-id").cloned().unwrap_or_default();
        let answer = request.as_mcp(true);
        match request.rpc().as_str() {
            "initialize" => {
                let session = format!("s{}", sessions.fetch_add(1, SeqCst) + 1);
                answer.expect("an answer").with("Mcp-Session-Id", &session)
            }
            "tools/call" if session == "s1" || always => {
                let body = refusal.1.replace("ID", &request.message()["id"].to_string());
                HttpAnswer::Full(refusal.0, vec![("Content-Type".into(), "application/json".into())], body)
            }
            "tools/call" => HttpAnswer::json(200, &request.result(&text(&session))),
            _ => answer.expect("an answer"),
        }
    })
}

fn count(server: &HttpServer, rpc: &str) -> usize {
    server.requests().iter().filter(|request| request.rpc() == rpc).count()
}

#[test]
fn a_server_that_lost_its_sessions_gets_a_new_one_and_repeats_only_calls_that_did_not_run() {
    let repeated = json!("s2");
    let not_repeated = json!([
        "upstream_unavailable",
        "server web is not available: it refused the MCP session; whether the call took effect is not known",
        true
    ]);
    let rows = [
        ("404", (404, ""), &repeated),
        (
            "404 of an SDK",
            (404, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#),
            &repeated,
        ),
        ("400 of an SDK's example", (400, NO_SESSION), &repeated),
        (
            "400 before initialize",
            (400, r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Server not initialized"}}"#),
            &repeated,
        ),
        ("400 as text", (400, "Invalid or missing session ID"), &repeated),
        (
            "400 without an id",
            (400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#),
            &not_repeated,
        ),
        (
            "400 with the id",
            (400, r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"No valid session ID"}}"#),
            &not_repeated,
        ),
    ];
    let mut table = Table::new("servers that do not know a session any more");
    for (name, refusal, expected) in rows {
        let server = forgetful_server(refusal, false);
        let outcome = value(&lockhouse(&server.url("/mcp"), ""), "[look('x'), look('y')]");
        table.row(format!("{name}: the call, and the next"), equal(&outcome, &json!([expected, "s2"])));
        let seen = (count(&server, "initialize"), count(&server, "tools/call"));
        let calls = if *expected == repeated { 3 } else { 2 };
        table.row(format!("{name}: sessions and calls"), equal(seen, (2, calls)));
    }
    let invalid = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no such session"}}"#;
    let server = forgetful_server((400, invalid), false);
    let outcome = value(&lockhouse(&server.url("/mcp"), ""), "[look('x'), look('y')]");
    let expected = json!(["invalid_arguments", "no such session", false]);
    table.row("control: an error of a call about sessions", equal(&outcome, &json!([expected, expected])));
    table.row("control: sessions", equal(count(&server, "initialize"), 1));
    table.finish();
}

#[test]
fn a_server_that_refuses_each_session_gets_one_new_one_in_ten_seconds() {
    let server = forgetful_server((400, NO_SESSION), true);
    let outcome = value(&lockhouse(&server.url("/mcp"), ""), "[look('x') for _ in range(3)]");
    let unavailable = |text: &str| json!(["upstream_unavailable", format!("server web {text}"), true]);
    let unmade = unavailable(
        "is not available: it does not know the MCP session any more, and a new one was begun less than 10 s ago; the call was not made",
    );
    let first = unavailable("does not know the MCP session any more, and no new one could be begun");
    assert_eq!(outcome, json!([first, unmade, unmade]));
    assert_eq!(count(&server, "initialize"), 2);
}
