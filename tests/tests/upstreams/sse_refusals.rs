//! Tests of hostile and unusable servers over HTTP+SSE, and of the configuration of this transport.

use lockhouse_tests::{
    HttpAnswer, HttpServer, Lockhouse, Session, SseServer, SseStream, Table, accepted, ensure, equal,
    wait_until,
};
use serde_json::{Value, json};

use crate::upstreams::scripted_server::Scripted;

const POLICY: &str = "version = 1\n[servers.web]\nallow = [\"*\"]\n";
const LOOK: &str = "from mcp_tools import ToolError, call_tool\n\
    try: r = call_tool('web', 'look', {'at': 'x'})\nexcept ToolError as e: r = [e.code, str(e)]\nr";
const MIB: usize = 1024 * 1024;
/// Upper limit for the peak memory of the supervisor.
const MEMORY_KIB_MAX: u64 = 300 * 1024;

fn lockhouse(url: &str, keys: &str) -> Lockhouse {
    let config = format!(
        "[limits]\nframe_kib = 64\ncode_kib = 1\n[servers.web]\nurl = \"{url}\"\ntransport = \"sse\"\nstart_timeout_seconds = 3\n{keys}\n"
    );
    let lockhouse = Lockhouse::new().config(&config).policy(POLICY);
    lockhouse.file("config/lockhouse/token", "SEKRET-TOKEN");
    lockhouse
}

fn peak_kib(session: &Session) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", session.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Starts a server whose streams begin with what `begin` writes. It answers every message as an MCP server does.
fn server(begin: impl Fn(&SseStream, &str, &str) + Send + Sync + 'static) -> SseServer {
    SseServer::start_with(begin, |request, stream| stream.accept(request, "2024-11-05"))
}

/// How a stream begins. The arguments are the stream, the path for posts, and the server's own URL.
type Begin = fn(&SseStream, &str, &str);
type BoxedBegin = Box<dyn Fn(&SseStream, &str, &str) + Send + Sync>;

fn endpoint(stream: &SseStream, named: &str) {
    stream.write(&format!("event: endpoint\ndata: {named}\n\n"));
}

#[tokio::test]
async fn messages_are_posted_to_the_origin_of_the_stream_alone() {
    const FOREIGN: &str =
        "it named an endpoint for messages at another origin than that of its URL; nothing was sent there";
    const NO_URL: &str = "it named an endpoint for messages that is not a valid URL";
    const SECOND: &str = "it named a second endpoint for messages";
    let foreign = HttpServer::start(|_| HttpAnswer::status(202));
    let elsewhere = foreign.url("");
    let at_foreign = |form: &'static str| {
        let elsewhere = elsewhere.clone();
        move |stream: &SseStream, path: &str, _: &str| {
            let host = elsewhere.trim_start_matches("http:");
            endpoint(stream, &form.replace("HOST", host).replace("PATH", path));
        }
    };
    let rows: [(&str, BoxedBegin, &str); 12] = [
        ("control: a path", Box::new(|stream, path, _| endpoint(stream, path)), ""),
        ("control: a whole URL", Box::new(|stream, path, own| endpoint(stream, &format!("{own}{path}"))), ""),
        (
            "control: other events first",
            Box::new(|stream, path, _| {
                stream.write(": hello\n\nevent: hello\ndata: x\n\n");
                endpoint(stream, path);
            }),
            "",
        ),
        ("another port", Box::new(at_foreign("http:HOSTPATH")), FOREIGN),
        ("another host without a scheme", Box::new(at_foreign("HOSTPATH")), FOREIGN),
        (
            "another scheme",
            Box::new(|stream, path, own| {
                endpoint(stream, &format!("{}{path}", own.replace("http:", "https:")))
            }),
            FOREIGN,
        ),
        (
            "another name of the host",
            Box::new(|stream, path, own| {
                endpoint(stream, &format!("{}{path}", own.replace("127.0.0.1", "localhost")))
            }),
            FOREIGN,
        ),
        ("a file", Box::new(|stream, _, _| endpoint(stream, "file:///etc/passwd")), FOREIGN),
        (
            "a user in the URL",
            Box::new(|stream, path, own| {
                endpoint(stream, &format!("{}{path}", own.replace("//", "//ada:x@")))
            }),
            NO_URL,
        ),
        (
            "a line feed",
            Box::new(|stream, path, _| {
                stream.write(&format!("event: endpoint\ndata: {path}\ndata: X-Key: y\n\n"))
            }),
            NO_URL,
        ),
        (
            "5 KB",
            Box::new(|stream, path, _| endpoint(stream, &format!("{path}{}", "x".repeat(5_000)))),
            NO_URL,
        ),
        (
            "two endpoints",
            Box::new(|stream, path, _| {
                endpoint(stream, path);
                endpoint(stream, path);
            }),
            SECOND,
        ),
    ];
    let mut table = Table::new("endpoints for messages");
    for (name, begin, why) in rows {
        let server = server(begin);
        let keys = "headers = {X-Key = 'SEKRET-HEADER'}\nbearer_token = '${file:token}'";
        let session = lockhouse(&server.url(), keys).serve().await;
        let outcome = Scripted::value(&session, LOOK).await;
        if why.is_empty() {
            table.row(name, equal(&outcome, &json!("x")));
        } else {
            let told = outcome[1].as_str().is_some_and(|told| told.contains(why));
            table.row(name, ensure(outcome[0] == "upstream_unavailable" && told, &outcome));
            let called = server.requests().iter().any(|request| request.rpc() == "tools/call");
            table.row(format!("{name}: no call"), ensure(!called, server.requests()));
        }
        let log = session.log();
        table.row(format!("{name}: no secret in the log"), ensure(!log.contains("SEKRET"), &log));
        session.close().await;
    }
    table.row("nothing reached the other origin", ensure(foreign.requests().is_empty(), foreign.requests()));
    table.finish();
}

#[tokio::test]
async fn no_stream_exceeds_the_limits_of_a_connection() {
    const TOO_MUCH: &str = "it exceeded the limit for unsolicited messages";
    const UNKNOWN: &str = "it sent an event over the limit of one message that answers no request";
    let rows: [(&str, Begin, &str); 6] = [
        (
            "a line without end",
            |stream, _, _| {
                (0..32).for_each(|_| stream.write(&"x".repeat(MIB)));
            },
            UNKNOWN,
        ),
        (
            "an endpoint without end",
            |stream, _, _| {
                stream.write("event: endpoint\ndata: /");
                (0..32).for_each(|_| stream.write(&"x".repeat(MIB)));
            },
            UNKNOWN,
        ),
        (
            "comments without end",
            |stream, _, _| {
                (0..8).for_each(|_| stream.write(&format!(": {}\n", "x".repeat(60)).repeat(MIB / 64)));
            },
            TOO_MUCH,
        ),
        (
            "other events without end",
            |stream, path, _| {
                endpoint(stream, path);
                (0..8).for_each(|_| {
                    stream.write(&format!("event: x\ndata: {}\n\n", "x".repeat(1_000)).repeat(MIB / 1_000))
                });
            },
            TOO_MUCH,
        ),
        (
            "messages without end",
            |stream, path, _| {
                endpoint(stream, path);
                let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
                (0..8).for_each(|_| stream.write(&format!("data: {note}\n\n").repeat(10_000)));
            },
            TOO_MUCH,
        ),
        (
            "a long id",
            |stream, path, _| {
                endpoint(stream, path);
                stream.message(&json!({"jsonrpc": "2.0", "id": "x".repeat(1_000), "method": "ping"}));
            },
            "longer than 256 bytes",
        ),
    ];
    let mut table = Table::new("floods on the stream");
    for (name, begin, why) in rows {
        let server = server(begin);
        let session = lockhouse(&server.url(), "").serve().await;
        let _ = Scripted::value(&session, LOOK).await;
        wait_until("it is told why", async || session.log().contains(why).then_some(())).await;
        let outcome = Scripted::value(&session, LOOK).await;
        let told = outcome[1].as_str().is_some_and(|told| told.contains(why));
        table.row(name, ensure(outcome[0] == "upstream_unavailable" && told, &outcome));
        let peak = peak_kib(&session);
        table.row(format!("{name}: memory"), ensure(peak < MEMORY_KIB_MAX, format!("{peak} KiB")));
        session.close().await;
    }
    table.finish();
}

/// The number of answers that wait until the server accepts them is bounded.
#[tokio::test]
async fn a_server_that_does_not_accept_answers_to_its_requests_is_disconnected() {
    const WHY: &str = "it sends requests and does not read the answers";
    let mut table = Table::new("600 requests of a server during a call");
    for accepts in [true, false] {
        let server = SseServer::start(move |request, stream| match request.rpc().as_str() {
            "" if !accepts => HttpAnswer::NoAnswer,
            "" => accepted(),
            "tools/call" => {
                (0..600)
                    .for_each(|id| stream.message(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})));
                if accepts { stream.accept(request, "2024-11-05") } else { accepted() }
            }
            _ => stream.accept(request, "2024-11-05"),
        });
        let session = lockhouse(&server.url(), "").serve().await;
        let outcome = Scripted::value(&session, LOOK).await;
        if accepts {
            table.row("control: they are answered", equal(&outcome, &json!("x")));
        } else {
            table.row("the call", ensure(outcome[0] == "upstream_unavailable", &outcome));
            wait_until("it is told why", async || session.log().contains(WHY).then_some(())).await;
        }
        session.close().await;
    }
    table.finish();
}

#[tokio::test]
async fn an_unusable_server_is_reported_without_repeating_its_text() {
    let stream = |text: &'static str| {
        HttpServer::start(move |request| match request.method.as_str() {
            "GET" => HttpAnswer::CutOff(text.into()),
            _ => HttpAnswer::status(202),
        })
    };
    let answering = |answer: HttpAnswer| HttpServer::start(move |_| answer.clone());
    let page = HttpAnswer::Full(200, vec![("Content-Type".into(), "text/html".into())], "SAID".into());
    let denied = HttpAnswer::Full(401, Vec::new(), "SAID".into());
    let silent = server(|_, _, _| {});
    let streamable =
        HttpServer::start(|request| request.as_mcp(true).unwrap_or_else(|| HttpAnswer::status(500)));
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}/sse", listener.local_addr().expect("an address"))
    };
    let foreign = HttpServer::start(|_| HttpAnswer::status(202));
    let away = answering(HttpAnswer::status(307).with("Location", &foreign.url("/sse")));
    let mut table = Table::new("servers over HTTP+SSE that cannot be used");
    for (name, url, words) in [
        ("connection refused", closed, "cannot connect to 127.0.0.1:"),
        (
            "no event `endpoint`",
            silent.url(),
            "did not finish its start within 3 s (start_timeout_seconds); it sent no event `endpoint`",
        ),
        ("no answer", answering(HttpAnswer::NoAnswer).url("/sse"), "it sent no event `endpoint`"),
        ("a stream that ends", stream("").url("/sse"), "its event stream ended"),
        (
            "a stream that ends after its endpoint",
            stream("event: endpoint\ndata: /m\n\n").url("/sse"),
            "its event stream ended",
        ),
        ("a page", answering(page).url("/sse"), "no stream of events"),
        ("nothing there", answering(HttpAnswer::status(404)).url("/sse"), "no MCP endpoint at its URL"),
        ("broken", answering(HttpAnswer::status(500)).url("/sse"), "HTTP status 500"),
        ("streamable HTTP", streamable.url("/sse"), "no MCP endpoint at its URL (HTTP 405)"),
        ("no token", answering(denied).url("/sse"), "run `lockhouse server login web`"),
        ("a redirect to another origin", away.url("/sse"), "redirects to another address"),
    ] {
        let answer = lockhouse(&url, "").answer("python", LOOK);
        let outcome = &answer["value"];
        let told = outcome[1].as_str().is_some_and(|text| text.contains(words) && !text.contains("SAID"));
        table.row(name, ensure(outcome[0] == "upstream_unavailable" && told, &answer));
    }
    table.row("nothing reached the other origin", ensure(foreign.requests().is_empty(), foreign.requests()));
    let usable = server(|stream, path, _| endpoint(stream, path));
    table.row(
        "control",
        equal(lockhouse(&usable.url(), "").answer("python", LOOK)["value"].take(), json!("x")),
    );
    table.finish();
}

/// Without `transport = "sse"`, no server over HTTP+SSE is used, wherever it is configured.
#[tokio::test]
async fn servers_over_sse_are_used_only_if_their_table_says_so() {
    let server = server(|stream, path, _| endpoint(stream, path));
    let url = server.url();
    let mut table = Table::new("servers over HTTP+SSE without a confirmation");
    let own = format!("[servers.web]\nurl = \"{url}\"\n");
    let lockhouse = Lockhouse::new().config(&own).policy(POLICY);
    let outcome = lockhouse.answer("python", LOOK)["value"].take();
    let told =
        outcome[1].as_str().is_some_and(|text| text.contains("write transport = \"sse\" if it has none"));
    table.row("a table without transport", ensure(told, &outcome));
    let entry = json!({"mcpServers": {"web": {"type": "sse", "url": url}}}).to_string();
    for option in [true, false] {
        let lockhouse = Lockhouse::new().policy(POLICY);
        let file = lockhouse.file("client.json", &entry).display().to_string();
        let config = if option { String::new() } else { format!("servers_files = [{file:?}]\n") };
        let lockhouse = lockhouse.config(&config);
        let mut arguments = vec!["run", "-c", LOOK, "--language", "python", "--json"];
        if option {
            arguments.extend(["--servers", &file]);
        }
        let name = if option { "--servers" } else { "servers_files" };
        let finished = lockhouse.run(&arguments);
        let told = "it uses HTTP+SSE, which MCP has deprecated: give the URL of its streamable HTTP endpoint, often the same with /mcp at its end, and type \"http\", or let `lockhouse import` take it over as it is";
        table.row(name, ensure(finished.stderr.contains(told), &finished));
        table.row(format!("{name}: no request"), equal(server.requests().len(), 0));
    }
    // A table of the same name takes precedence over the entry of the client.
    let lockhouse = Lockhouse::new().policy(POLICY);
    let file = lockhouse.file("client.json", &entry).display().to_string();
    let config = format!("servers_files = [{file:?}]\n[servers.web]\nurl = \"{url}\"\ntransport = \"sse\"\n");
    let value: Value = lockhouse.config(&config).answer("python", LOOK)["value"].take();
    table.row("with a table that confirms it", equal(value, json!("x")));
    table.finish();
}

#[test]
fn the_transport_is_checked_with_the_configuration() {
    for (name, table) in [
        ("unknown", "url = 'https://x.example/sse'\ntransport = 'websocket'\n"),
        ("number", "url = 'https://x.example/sse'\ntransport = 1\n"),
        ("command", "command = 'x'\ntransport = 'sse'\n"),
        ("alone", "transport = 'sse'\n"),
        ("misspelt", "url = 'https://x.example/sse'\ntransprot = 'sse'\n"),
    ] {
        let lockhouse = Lockhouse::new().config(&format!("[servers.web]\n{table}"));
        let finished = lockhouse.run(&["config", "check"]);
        assert_eq!(finished.status, Some(2), "{finished:?}");
        let text = finished.transcript().replace(lockhouse.path("").to_str().expect("UTF-8"), "[DIR]/");
        insta::assert_snapshot!(format!("transport_{name}"), text);
    }
}

/// The transport is shown as deprecated where people look at their servers.
#[tokio::test]
async fn the_transport_is_reported_as_deprecated() {
    const WARNING: &str =
        "uses HTTP+SSE, which MCP has deprecated: ask its vendor for the URL of streamable HTTP";
    let server = server(|stream, path, _| endpoint(stream, path));
    let lockhouse = lockhouse(&server.url(), "");
    let mut table = Table::new("warnings");
    let listed = lockhouse.run(&["server", "list"]);
    table.row("server list", ensure(listed.stdout.contains("sse (deprecated)"), &listed));
    let listed = lockhouse.run(&["server", "list", "--json"]);
    table.row("server list --json", ensure(listed.stdout.contains("\"transport\": \"sse\""), &listed));
    let shown = lockhouse.run(&["server", "get", "web"]);
    table.row("server get", ensure(shown.stdout.contains("sse (deprecated)"), &shown));
    let checked = lockhouse.run(&["config", "check"]);
    table.row("config check", ensure(checked.stderr.contains(WARNING), &checked));
    let doctor = lockhouse.run(&["doctor"]);
    let words = doctor.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    table.row("doctor", ensure(words.contains(WARNING), &doctor));
    let session = lockhouse.serve().await;
    table.row("serve", ensure(session.wait_for_log(WARNING).await.contains("server web"), ()));
    session.close().await;
    let other = Lockhouse::new().config("[servers.web]\nurl = 'https://x.example/mcp'\ntransport = 'http'\n");
    let checked = other.run(&["config", "check"]);
    table
        .row("control", ensure(checked.status == Some(0) && !checked.transcript().contains("SSE"), &checked));
    table.finish();
}
