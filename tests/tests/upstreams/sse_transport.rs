//! Tests of upstream servers over HTTP+SSE, the deprecated transport of MCP 2024-11-05.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockhouse_tests::{
    ClientUser, HttpAnswer, HttpRequest, LANGUAGES, Lockhouse, Session, SseServer, SseStream, Table,
    UserReply, accepted, ensure, equal, wait_until,
};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::Scripted;

const FIRST: &str = "2024-11-05";
const POLICY: &str = "version = 1\n[servers.web]\nallow = [\"*\"]\n";
/// Limits a message of an upstream server to 192 KiB.
const SMALL: &str = "[limits]\nframe_kib = 64\ncode_kib = 1\n";

/// Returns a Lockhouse test fixture with a server over HTTP+SSE and these additional keys of its table.
fn lockhouse(server: &SseServer, keys: &str) -> Lockhouse {
    let url = server.url();
    let config = format!(
        "{SMALL}[servers.web]\nurl = \"{url}\"\ntransport = \"sse\"\nstart_timeout_seconds = 5\n{keys}\n"
    );
    let lockhouse = Lockhouse::new().config(&config).policy(POLICY);
    lockhouse.file("config/lockhouse/token", "SEKRET-TOKEN");
    lockhouse
}

/// Returns a Python program that calls the tool `look`. Its value is the result, or a list with the code and the message
/// of the error.
fn look(at: &str) -> String {
    format!(
        "from mcp_tools import ToolError, call_tool\n\
         try: r = call_tool('web', 'look', {{'at': '{at}'}})\nexcept ToolError as e: r = [e.code, str(e)]\nr"
    )
}

async fn outcome(session: &Session, at: &str) -> Value {
    Scripted::value(session, &look(at)).await
}

fn at(request: &HttpRequest) -> String {
    request.message()["params"]["arguments"]["at"].as_str().unwrap_or_default().to_owned()
}

/// Starts a server that answers calls with `call`, and everything else as an MCP server does.
fn server(call: impl Fn(&HttpRequest, &SseStream) -> HttpAnswer + Send + Sync + 'static) -> SseServer {
    SseServer::start(move |request, stream| match request.rpc().as_str() {
        "tools/call" => call(request, stream),
        _ => stream.accept(request, FIRST),
    })
}

/// Programs (Python, TypeScript) that call the tool three times, twice of them concurrently.
const CALLS: [&str; 2] = [
    "import asyncio\nfrom mcp_tools.aio import web\nr = await asyncio.gather(web.look(at='ü'), web.look(at=[1, None]))\n\
     [*r, await web.look(at={'a': 1.5})]",
    "import { web } from 'mcp_tools';\nconst r = await Promise.all([web.look({ at: 'ü' }), web.look({ at: [1, null] })]);\n\
     [...r, await web.look({ at: { a: 1.5 } })]",
];

#[tokio::test]
async fn programs_get_whole_results_in_every_protocol_version() {
    let mut table = Table::new("calls over HTTP+SSE");
    for version in [FIRST, "2025-03-26", "2025-06-18", "2025-11-25"] {
        let server = SseServer::start(move |request, stream| {
            if request.rpc() != "tools/call" {
                return stream.accept(request, version);
            }
            let block =
                json!({"got": request.message()["params"]["arguments"]["at"], "ours": {"kept": [1.5, null]}});
            let result = json!({"structuredContent": block, "content": []});
            // Comments, other events and a message in several lines.
            let message = format!("{:#}", request.result(&result)).replace('\n', "\ndata: ");
            stream.write(&format!(": ping\n\nevent: other\ndata: x\n\nid: 7\ndata: {message}\n\n"));
            accepted()
        });
        let lockhouse = lockhouse(&server, "headers = {X-Team = 'north'}\nbearer_token = '${file:token}'");
        for (language, code) in LANGUAGES.into_iter().zip(CALLS) {
            let mut answer = lockhouse.answer(language, code);
            let expected = |got: &Value| json!({"got": got, "ours": {"kept": [1.5, null]}});
            let expected = [json!("ü"), json!([1, null]), json!({"a": 1.5})].map(|got| expected(&got));
            table
                .row(format!("{version}, {language}: value"), equal(answer["value"].take(), json!(expected)));
            table.row(format!("{version}, {language}: status"), equal(&answer["status"], &json!("ok")));
        }
        let requests = server.requests();
        let carries = |name: &str, value: &str| {
            requests.iter().all(|request| request.headers.get(name).is_some_and(|found| found == value))
        };
        table.row(format!("{version}: headers"), ensure(carries("x-team", "north"), &requests));
        table.row(
            format!("{version}: token"),
            ensure(carries("authorization", "Bearer SEKRET-TOKEN"), &requests),
        );
        let methods: Vec<String> =
            requests.iter().map(|request| request.method.clone() + &request.rpc()).collect();
        let calls = methods.iter().filter(|method| *method == "POSTtools/call").count();
        // Nothing is tried that servers over HTTP+SSE do not know.
        let expected =
            ["GET", "POSTinitialize", "POSTnotifications/initialized", "POSTtools/list", "POSTtools/call"];
        let only = methods.iter().all(|method| expected.contains(&method.as_str()));
        table.row(format!("{version}: requests"), ensure(only && calls == 6, &methods));
        table.row(format!("{version}: one stream for each run"), equal(server.streams(), 2));
    }
    table.finish();
}

#[tokio::test]
async fn a_failed_call_reports_its_reason_and_the_next_call_works() {
    let server = server(|request, stream| {
        let unauthorized = |status| HttpAnswer::json(status, &json!({"error": "SAID-BY-SERVER"}));
        let error = json!({"code": -32602, "message": "no such place"});
        let error = json!({"jsonrpc": "2.0", "id": request.message()["id"], "error": error});
        match at(request).as_str() {
            "large" => stream.message(&request.result(&json!({"content": "x".repeat(64 * 1024 * 3 + 1)}))),
            "60 KB" => {
                let text = json!({"type": "text", "text": "x".repeat(60_000)});
                stream.message(&request.result(&json!({"content": [text]})));
            }
            "no json" => {
                stream.write(&format!("data: {{\"id\": {}, \"result\": {{\n\n", request.message()["id"]))
            }
            "error" => stream.message(&error),
            "refused with an error" => return HttpAnswer::json(400, &error),
            "broken" => return HttpAnswer::Full(500, Vec::new(), "SAID-BY-SERVER".into()),
            "busy" => return HttpAnswer::status(429),
            "moved" => return HttpAnswer::status(302).with("Location", "/elsewhere"),
            "token" => return unauthorized(401).with("WWW-Authenticate", "Bearer error=\"SAID-BY-SERVER\""),
            "scope" => {
                let challenge = "Bearer error=\"insufficient_scope\", scope=\"SAID-BY-SERVER\"";
                return unauthorized(403).with("WWW-Authenticate", challenge);
            }
            "no answer" => {}
            "post without answer" => return HttpAnswer::NoAnswer,
            "answer before the end of the post" => {
                stream.message(&request.result(&json!({"content": [{"type": "text", "text": "early"}]})));
                return HttpAnswer::NoAnswer;
            }
            _ => return stream.accept(request, FIRST),
        }
        accepted()
    });
    let lockhouse = lockhouse(&server, "call_timeout_seconds = 2");
    let session = lockhouse.serve().await;
    let mut table = Table::new("calls over HTTP+SSE");
    for (name, code, words) in [
        ("large", "result_too_large", "exceeds the limit"),
        ("no json", "tool_failed", "not valid JSON"),
        ("error", "invalid_arguments", "no such place"),
        ("refused with an error", "invalid_arguments", "no such place"),
        ("broken", "upstream_unavailable", "HTTP status 500"),
        ("busy", "upstream_unavailable", "HTTP 429"),
        ("moved", "upstream_unavailable", "redirects to another address"),
        ("token", "upstream_unavailable", "run `lockhouse server login web`"),
        ("scope", "upstream_unavailable", "to ask for more, run `lockhouse server login web`"),
        ("no answer", "timeout", "did not answer within 2 s"),
        ("post without answer", "timeout", "did not answer within 2 s"),
    ] {
        let failed = outcome(&session, name).await;
        let told = failed[1].as_str().is_some_and(|text| text.contains(words) && !text.contains("SAID"));
        table.row(name, ensure(failed[0] == code && told, &failed));
        table.row(format!("{name}: the next call"), equal(outcome(&session, "fine").await, json!("fine")));
    }
    let early = outcome(&session, "answer before the end of the post").await;
    table.row("an answer before the end of the post", equal(early, json!("early")));
    let large = Scripted::value(&session, "from mcp_tools import web\nlen(web.look(at='60 KB'))").await;
    table.row("control: a large result", equal(large, json!(60_000)));
    table.row("one connection for all", equal(server.streams(), 1));
    session.close().await;
    table.finish();
}

#[test]
fn large_results_arrive_whole_and_several_at_one_time() {
    const BYTES: usize = 7_000_000;
    let server = server(|request, stream| {
        let text = json!({"type": "text", "text": "ü".repeat(BYTES / 2)});
        stream.message(&request.result(&json!({"content": [text]})));
        accepted()
    });
    let config = format!("[servers.web]\nurl = \"{}\"\ntransport = \"sse\"\n", server.url());
    let lockhouse = Lockhouse::new().config(&config).policy(POLICY);
    let codes = [
        "import asyncio\nfrom mcp_tools.aio import web\n\
         [len(text) for text in await asyncio.gather(*(web.look(at=n) for n in range(3)))]",
        "import { web } from 'mcp_tools';\n\
         return (await Promise.all([1, 2, 3].map((at) => web.look({ at })))).map((text: string) => text.length);",
    ];
    let mut table = Table::new("three concurrent results of 7 MB");
    for (language, code) in LANGUAGES.into_iter().zip(codes) {
        let answer = lockhouse.answer(language, code);
        table.row(language, ensure(answer["value"] == json!([BYTES / 2, BYTES / 2, BYTES / 2]), &answer));
    }
    table.finish();
}

/// A stream that ends fails the calls in flight, as a lost connection does, and the next call has a new session.
#[tokio::test]
async fn a_lost_stream_fails_its_calls_and_is_opened_again() {
    const LOST: &str = "server web ended during the call; whether the call took effect is not known";
    let mut table = Table::new("lost streams");
    for (how, words) in [
        ("end", LOST),
        ("404", "it does not know the MCP session any more"),
        ("400", "it does not know the MCP session any more"),
    ] {
        let server = server(move |request, stream| match at(request).as_str() {
            "end" => {
                stream.end();
                accepted()
            }
            "404" => HttpAnswer::Full(404, Vec::new(), "Could not find session".into()),
            "400" => HttpAnswer::Full(400, Vec::new(), "Invalid session ID".into()),
            _ => stream.accept(request, FIRST),
        });
        let session = lockhouse(&server, "").serve().await;
        table.row(format!("{how}: before"), equal(outcome(&session, "x").await, json!("x")));
        let failed = outcome(&session, how).await;
        let told = failed[1].as_str().is_some_and(|text| text.contains(words));
        table.row(format!("{how}: the call"), ensure(failed[0] == "upstream_unavailable" && told, &failed));
        wait_until("a new stream", async || (server.streams() == 2).then_some(())).await;
        let next = wait_until("the next call", async || {
            let next = outcome(&session, "x").await;
            (next == "x").then_some(next)
        });
        table.row(format!("{how}: the next call"), equal(next.await, json!("x")));
        let initialized = server.requests().iter().filter(|request| request.rpc() == "initialize").count();
        table.row(format!("{how}: handshakes"), equal(initialized, 2));
        let log = session.log();
        let reason = if how == "end" { "its event stream ended" } else { "it does not know the MCP session" };
        table.row(
            format!("{how}: log"),
            ensure(log.contains(&format!("the connection ended: {reason}")), log),
        );
        session.close().await;
    }
    table.finish();
}

#[tokio::test]
async fn notifications_and_progress_arrive_on_the_stream() {
    let listed = AtomicUsize::new(0);
    let server = SseServer::start(move |request, stream| match request.rpc().as_str() {
        "initialize" => {
            let capabilities = json!({"tools": {"listChanged": true}});
            let us = json!({"name": "fixture", "version": "1"});
            let result = json!({"protocolVersion": FIRST, "capabilities": capabilities, "serverInfo": us});
            stream.message(&request.result(&result));
            accepted()
        }
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {"at": {}}});
            let names: &[&str] =
                if listed.fetch_add(1, Ordering::SeqCst) == 0 { &["look"] } else { &["look", "more"] };
            let tools: Vec<Value> =
                names.iter().map(|name| json!({"name": name, "inputSchema": schema})).collect();
            stream.message(&request.result(&json!({"tools": tools})));
            accepted()
        }
        "tools/call" if at(request) == "change" => {
            stream.message(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            stream.accept(request, FIRST)
        }
        "tools/call" if at(request) == "slow" => {
            let (request, stream) = (request.clone(), stream.clone());
            std::thread::spawn(move || {
                let token = &request.message()["params"]["_meta"]["progressToken"];
                for step in 1..=4 {
                    std::thread::sleep(Duration::from_millis(700));
                    let params =
                        json!({"progressToken": token, "progress": step, "total": 4, "message": "step"});
                    stream.message(
                        &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                    );
                }
                stream.accept(&request, FIRST)
            });
            accepted()
        }
        "tools/call" if at(request) == "silent" => accepted(),
        _ => stream.accept(request, FIRST),
    });
    let person = ClientUser::default();
    let lockhouse = lockhouse(&server, "call_timeout_seconds = 2");
    let session = Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
    let mut table = Table::new("messages of a server over HTTP+SSE");
    let slow = session.run_asking(&look("slow")).await;
    table.row("progress extends the timeout", equal(&slow["value"], &json!("slow")));
    let notes = person.progress_notifications();
    let is_forwarded = notes.iter().any(|note| note.message.as_deref() == Some("web.look: step"));
    table.row("progress is forwarded", ensure(is_forwarded, &notes));
    let silent = session.run_asking(&look("silent")).await;
    table.row("control: without progress", equal(&silent["value"][0], &json!("timeout")));
    let cancelled = wait_until("a cancellation", async || {
        server.requests().into_iter().find(|request| request.rpc() == "notifications/cancelled")
    });
    let cancelled = cancelled.await.message();
    table.row(
        "the call is cancelled at the server",
        ensure(cancelled["params"]["requestId"].is_number(), cancelled),
    );
    let changed = session.run_asking(&look("change")).await;
    table.row("a changed list", equal(&changed["value"], &json!("change")));
    let tools = "from mcp_tools import web\nsorted(tool['name'] for tool in web.list_tools())";
    let listed = wait_until("the new list", async || {
        let value = session.run_code("python", tools).await["value"].take();
        (value.as_array().map(Vec::len) == Some(2)).then_some(value)
    });
    table.row("the new list", equal(listed.await, json!(["look", "more"])));
    session.close().await;
    table.finish();
}

/// Requests of the server arrive on the stream, and are answered by posts.
#[tokio::test]
async fn a_server_asks_the_user_during_a_call() {
    let server = SseServer::start(|request, stream| {
        let message = request.message();
        match request.rpc().as_str() {
            "tools/call" => {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let params = json!({"message": "Your name?", "requestedSchema": schema});
                let question =
                    json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params});
                let asked = if at(request) == "ping" {
                    json!({"jsonrpc": "2.0", "id": "q", "method": "ping"})
                } else {
                    question
                };
                stream.message(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": message["id"]}}));
                stream.message(&asked);
                accepted()
            }
            "" if message["id"] == "q" => {
                // The id of the only call, which is the third request after `initialize` and `tools/list`.
                let said = message["result"].to_string();
                let result = json!({"content": [{"type": "text", "text": said}]});
                stream.message(&json!({"jsonrpc": "2.0", "id": 3, "result": result}));
                accepted()
            }
            _ => stream.accept(request, "2025-11-25"),
        }
    });
    let mut table = Table::new("requests of a server over HTTP+SSE");
    for (name, reply, expected) in [
        (
            "an answer",
            UserReply::Accept(json!({"name": "Ada"})),
            json!({"action": "accept", "content": {"name": "Ada"}}),
        ),
        ("a refusal", UserReply::Decline, json!({"action": "decline"})),
    ] {
        let person = ClientUser::replying(reply);
        let lockhouse = lockhouse(&server, "");
        let session =
            Session::connect_as(person.clone(), lockhouse.command(&["serve"]), Session::latest()).await;
        let answer = session.run_asking(&look("x")).await;
        table.row(name, equal(&answer["value"], &expected));
        let asked = person.received_requests();
        table.row(
            format!("{name}: the question"),
            ensure(asked[0]["message"] == "Server web asks: Your name?", &asked),
        );
        session.close().await;
    }
    let session = lockhouse(&server, "").serve().await;
    table.row("a ping", equal(outcome(&session, "ping").await, json!({})));
    session.close().await;
    table.finish();
}
