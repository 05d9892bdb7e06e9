//! Tests of HTTP request bodies that would cost the daemon much more memory or time than their sender: the daemon
//! refuses them before it parses them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use lockhouse_tests::{
    Daemon, HttpClient, Lockhouse, Reply, Table, ensure, equal, fixture_server, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::http::OPEN;
use crate::http::sessions::token;

/// Returns a Lockhouse test fixture whose daemon exposes the fixture server's tool `echo` directly to AI clients.
fn direct_tools() -> Lockhouse {
    let server = format!("[servers.fixture]\ncommand = {:?}\nexpose = \"direct\"\n", fixture_server());
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    let clients = "[clients]\nrequests = \"1000000/min\"\n";
    Lockhouse::new().config(&format!("{OPEN}{clients}{server}")).policy(policy)
}

/// Returns the peak resident memory of the daemon in MiB.
fn peak_memory_mib(daemon: &Daemon) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.front_pid())).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// Returns an HTTP/2 client of the daemon with this bearer token. The client does not share its connection with other
/// HTTP clients.
fn http2_client(daemon: &Daemon, token: &str) -> HttpClient {
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    HttpClient::with_client(client, &daemon.url("/mcp"), Some(token))
}

/// An HTTP request whose body never ends: the test sends only a part of it.
struct UnfinishedRequest {
    answer: JoinHandle<reqwest::Result<reqwest::Response>>,
    taken: Arc<AtomicUsize>,
}

impl UnfinishedRequest {
    /// Starts a request in the background. It sends `bytes` bytes of its body, and then neither more bytes nor the end
    /// of the body.
    fn without_end(http_client: &HttpClient, bytes: usize) -> Self {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let parts = futures_util::stream::iter(std::iter::repeat_n([b' '; 10_000], bytes / 10_000));
        let parts = parts.map(move |part| {
            counted.fetch_add(part.len(), Ordering::Relaxed);
            Ok::<_, std::io::Error>(part.to_vec())
        });
        let body = reqwest::Body::wrap_stream(parts.chain(futures_util::stream::pending()));
        Self { answer: post_stream(http_client, body), taken }
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Waits until more than 1 MB of the body has been sent. The daemon reads that much of a body only after it has
    /// given the request a permit for a large body.
    async fn wait_for_permit(&self) {
        wait_until("it has a place", async || (self.taken() > 1_000_000).then_some(())).await;
    }
}

impl Drop for UnfinishedRequest {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

fn post_stream(
    http_client: &HttpClient,
    body: reqwest::Body,
) -> JoinHandle<reqwest::Result<reqwest::Response>> {
    let request = http_client.http(Method::POST).header("content-type", "application/json");
    tokio::spawn(request.body(body).send())
}

/// Returns a direct `tools/call` of the tool `echo` as JSON text. `value` is the argument `value` of the call, and
/// `meta` is the value of an additional member of `_meta`, both as JSON text. The other members of `_meta` are those
/// that `http_client` sends in every request. The text is assembled by hand because the test needs a certain order of
/// the keys, which `json!` would sort.
fn echo(http_client: &HttpClient, value: &str, meta: &str) -> String {
    let mut message = http_client.calling("fixture__echo", json!({}));
    let own = message["params"]["_meta"].to_string();
    let own = own.trim_end_matches('}').to_owned() + &format!("}},\"x\":{meta}}}");
    message["params"] = Value::Null;
    let params = format!(r#"{{"_meta":{own},"arguments":{{"value":{value}}},"name":"fixture__echo"}}"#);
    // `params` comes before `method`, which is the most expensive order for rmcp.
    format!(r#"{{"jsonrpc":"2.0","id":7,"params":{params},"method":"tools/call"}}"#)
}

async fn post(http_client: &HttpClient, kind: &str, body: String) -> Reply {
    let request = http_client.http(Method::POST).header("content-type", kind).body(body);
    let request = request.header("mcp-method", "tools/call").header("mcp-name", "fixture__echo");
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply { status, headers, body: response.text().await.unwrap_or_default() }
}

/// Checks that a reply refuses the request with this HTTP status and JSON-RPC error code, and with an error message
/// that contains `words`.
fn check_refused(reply: &Reply, status: u16, code: i64, words: &str) -> Result<(), String> {
    let error = &reply.answer()["error"];
    let says = error["message"].as_str().is_some_and(|message| message.contains(words));
    ensure(reply.status == status && error["code"] == code && says, reply)
}

#[tokio::test]
async fn expensive_bodies_are_refused_before_they_are_parsed() {
    let lockhouse = direct_tools();
    let daemon = lockhouse.daemon().await;
    let http_client = daemon.http_client(None);
    let list = |item: &str, bytes: usize| {
        let count = bytes / (item.len() + 1);
        format!("[{}{item}]", format!("{item},").repeat(count - 1))
    };
    let members = |count: usize| {
        let mut object = "{\"0\":0".to_owned();
        (1..count).for_each(|name| write!(object, ",\"{name}\":0").expect("text"));
        object + "}"
    };
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    // serde_json parses this body as a list of a million values.
    let read_as_json =
        format!(r#"{{"\u0024serde_json::private::RawValue":"[{}0]"}}"#, "0,".repeat(1_000_000));
    let mut table = Table::new("bodies");
    let json = "application/json";
    let small = echo(&http_client, "[1, \"}\\\"\", {\"a\": null}]", "0");
    let reply = post(&http_client, json, small).await;
    let content = &reply.answer()["result"]["structuredContent"]["value"];
    table.row("control: a call is passed on", equal(content, &json!([1, "}\"", {"a": null}])));
    let before = peak_memory_mib(&daemon);
    let flood = (0..8).map(|_| post(&http_client, json, echo(&http_client, &list("{}", 1_900_000), "0")));
    for reply in futures_util::future::join_all(flood).await {
        table
            .row("empty objects, 1.9 MB", check_refused(&reply, 413, -32_600, "more than 10000 JSON values"));
    }
    for (name, body, status, words) in [
        ("empty objects, 60 KB", echo(&http_client, &list("{}", 60_000), "0"), 413, "10000 JSON values"),
        ("metadata of 10,000 members", echo(&http_client, "0", &members(10_000)), 413, "10000 JSON values"),
        ("many levels", echo(&http_client, &nested(110), "0"), 400, "more than 100 levels"),
        ("a text that would be read as JSON", echo(&http_client, &read_as_json, "0"), 400, "RawValue"),
        ("the same in metadata", echo(&http_client, "0", &read_as_json), 400, "RawValue"),
    ] {
        table.row(name, check_refused(&post(&http_client, json, body).await, status, -32_600, words));
    }
    for kind in [json, "Application/JSON", " application/json ; charset=utf-8"] {
        let reply = post(&http_client, kind, echo(&http_client, &nested(1_000_000), "0")).await;
        table.row(format!("a million levels, as {kind:?}"), check_refused(&reply, 400, -32_600, "levels"));
    }
    let grown = peak_memory_mib(&daemon).saturating_sub(before);
    table.row("memory, MiB", ensure(grown < 60, grown));
    let numbers = list("7", 19_000);
    let reply = post(&http_client, json, echo(&http_client, &numbers, &members(450))).await;
    let echoed = reply.answer()["result"]["structuredContent"]["value"].to_string();
    table.row("control: 9500 values in arguments, 450 beside them", equal(echoed, numbers));
    table.finish();
}

#[tokio::test]
async fn the_largest_program_fits_into_a_body_with_any_characters() {
    // JSON takes six bytes for each of these characters.
    let program = |kib: usize| format!("len('{}')", "\u{1}".repeat(kib * 1024));
    for (limits, kib) in [("", 255), ("[limits]\ncode_kib = 1024\n", 1_023)] {
        let daemon = Lockhouse::new().config(&format!("{OPEN}{limits}")).daemon().await;
        let answer = daemon.http_client(None).run_code("python", &program(kib)).await;
        assert_eq!(answer["value"], json!(kib * 1024), "{limits}: {answer}");
        let reply = {
            let http_client = daemon.http_client(None);
            http_client.post(&http_client.calling("run_code", json!({"code": program(kib * 2)}))).await
        };
        let told = format!("at most {} KiB", (kib + 1) * 6 + 512);
        assert_eq!(check_refused(&reply, 413, -32_600, &told), Ok(()), "{limits}");
    }
}

#[tokio::test]
async fn large_messages_do_not_end_the_front() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let front = daemon.front_pid();
    let http_client = daemon.http_client(None);
    // The thread for large bodies parses these. Their programs are not large enough for memory mappings of their own, so it allocates and
    // frees them on a heap, which shrinks.
    for kib in [70, 100, 130, 160, 200, 250] {
        let program = format!("len('{}')", "x".repeat(kib * 1024));
        let answer = http_client.run_code("python", &program).await;
        assert_eq!(answer["value"], json!(kib * 1024), "{kib} KiB");
    }
    assert_eq!(daemon.front_pid(), front);
}

#[tokio::test]
async fn a_client_that_sends_its_whole_body_first_reads_the_reason_of_the_refusal() {
    let config = "[clients]\nrequests = \"60/h\"\n[http.limits]\nbody_kib = 8192\n";
    let lockhouse = Lockhouse::new().config(config);
    let names = ["announced", "chunks", "indebted"];
    let [announced, chunks, indebted] = names.map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let head = |token: &str, more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{more}\r\n\r\n",
            daemon.address()
        )
    };
    let mut table = Table::new("bodies that are sent completely before the response is read");
    // The body is larger than the buffers of the connection, so it is sent completely only if the daemon reads it.
    let large = " ".repeat(12 * 1024 * 1024);
    let unproven = " ".repeat(200 * 1024);
    for (what, head, body, expected) in [
        ("announced", head(&announced, &format!("Content-Length: {}", large.len())), large.clone(), "413"),
        (
            "in chunks",
            head(&chunks, "Transfer-Encoding: chunked"),
            format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len()),
            "413",
        ),
        ("of a stranger", head("no-token", &format!("Content-Length: {}", unproven.len())), unproven, "401"),
    ] {
        let mut connection = daemon.connection().await;
        connection.write_all(head.as_bytes()).await.unwrap();
        let written = connection.write_all(body.as_bytes()).await.map_err(|error| error.to_string());
        table.row(format!("{what}: written"), written);
        table.row(format!("{what}: answered"), check_status(&mut connection, expected).await);
    }
    // The daemon admits this request; later requests of this connection exceed the memory limit.
    let mut connection = daemon.connection().await;
    let body = " ".repeat(8_000_000);
    let head = head(&indebted, &format!("Expect: 100-continue\r\nContent-Length: {}", body.len()));
    connection.write_all(head.as_bytes()).await.unwrap();
    table.row("in debt: control: it is let in", check_status(&mut connection, "100").await);
    let http_client = daemon.http_client(Some(&indebted));
    let values = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {"x": vec![0; 9_000]}}});
    post(&http_client, "application/json", values.to_string()).await;
    let written = connection.write_all(body.as_bytes()).await.map_err(|error| error.to_string());
    table.row("in debt: written", written);
    table.row("in debt: answered", check_status(&mut connection, "429").await);
    table.finish();
}

/// Reads the head of the next HTTP response from the connection, and checks that the response has this status, such as
/// `429`.
async fn check_status(connection: &mut TcpStream, status: &str) -> Result<(), String> {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        match tokio::time::timeout(Duration::from_secs(20), connection.read_u8()).await {
            Ok(Ok(byte)) => answer.push(byte),
            other => return Err(format!("{other:?} after {:?}", String::from_utf8_lossy(&answer))),
        }
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    ensure(answer.starts_with(&format!("HTTP/1.1 {status}")), answer)
}

#[tokio::test]
async fn slow_large_bodies_delay_no_other_client() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbody_seconds = 600\n");
    let [slow, other] = ["slow", "other"].map(|name| {
        let made = lockhouse.run(&["token", "create", name]);
        made.stdout.trim_end().to_owned()
    });
    let daemon = lockhouse.daemon().await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {slow}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
        daemon.address()
    );
    let mut open = Vec::new();
    for _ in 0..40 {
        let mut connection = daemon.connection().await;
        let part = format!("{head}{}", " ".repeat(90_000));
        connection.write_all(part.as_bytes()).await.unwrap();
        open.push(connection);
    }
    let code = format!("len('{}')", "x".repeat(200_000));
    let answer = daemon.http_client(Some(&other)).run_code("python", &code).await;
    assert_eq!(answer["value"], 200_000, "{answer}");
    // The slow client's own large body waits for memory, but its small requests do not.
    let answer = daemon.http_client(Some(&slow)).run_code("python", "1 + 1").await;
    assert_eq!(answer["value"], 2, "{answer}");
    drop(open);
}

#[tokio::test]
async fn waiting_http2_requests_take_little_memory() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbody_seconds = 600\nbodies_mib = 2\n");
    let [slow, other] = ["slow", "other"].map(|name| token(&lockhouse, name));
    let daemon = lockhouse.daemon().await;
    let answer = http2_client(&daemon, &other).run_code("python", "1 + 1").await;
    assert_eq!(answer["value"], 2, "{answer}");
    let before = peak_memory_mib(&daemon);
    let holder = UnfinishedRequest::without_end(&http2_client(&daemon, &slow), 1_900_000);
    holder.wait_for_permit().await;
    let waiting: Vec<_> =
        (0..200).map(|_| UnfinishedRequest::without_end(&http2_client(&daemon, &slow), 1_900_000)).collect();
    let mut last = Vec::new();
    wait_until("each has sent as much as it may", async || {
        let taken: Vec<usize> = waiting.iter().map(UnfinishedRequest::taken).collect();
        let is_all = taken.iter().all(|taken| *taken > 64 * 1024) && taken == last;
        last = taken;
        tokio::time::sleep(Duration::from_millis(300)).await;
        is_all.then_some(())
    })
    .await;
    let grown = peak_memory_mib(&daemon) - before;
    assert!(grown < 60, "{grown} MiB for 200 requests that wait");
    assert!(waiting.iter().all(|sending| !sending.answer.is_finished()), "they wait");
}

#[tokio::test]
async fn waiting_requests_block_no_other_stream_of_their_http2_connection() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbodies_mib = 2\n");
    let (slow, own) = (token(&lockhouse, "slow"), token(&lockhouse, "own"));
    let daemon = lockhouse.daemon().await;
    let holder = UnfinishedRequest::without_end(&http2_client(&daemon, &slow), 1_900_000);
    holder.wait_for_permit().await;
    let shared = http2_client(&daemon, &own);
    let mut large: Vec<_> = (0..6).map(|_| UnfinishedRequest::without_end(&shared, 1_900_000)).collect();
    wait_until("those that may not wait are told", async || {
        (large.iter().filter(|sending| sending.answer.is_finished()).count() == 4).then_some(())
    })
    .await;
    for sending in large.iter_mut().filter(|sending| sending.answer.is_finished()) {
        let answer = (&mut sending.answer).await.unwrap().unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (503, &b"2"[..]));
    }
    // The bodies together are larger than the flow-control window of the connection. The waiting requests leave a part
    // of it.
    let code = format!("len('{}')", "x".repeat(60_000));
    for _ in 0..5 {
        let answer = shared.run_code("python", &code).await;
        assert_eq!(answer["value"], 60_000, "{answer}");
    }
}

#[tokio::test]
async fn the_body_timeout_begins_after_the_wait_for_memory() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbodies_mib = 2\nbody_seconds = 4\n");
    let (slow, other) = (token(&lockhouse, "slow"), token(&lockhouse, "other"));
    let daemon = lockhouse.daemon().await;
    let mut holder = UnfinishedRequest::without_end(&http2_client(&daemon, &slow), 1_900_000);
    holder.wait_for_permit().await;
    // The body waits for most of the four seconds that a body may take, and its end arrives two seconds after its
    // permit.
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let begin = futures_util::stream::once(async { Ok::<_, std::io::Error>(vec![b' '; 90_000]) });
    let rest = futures_util::stream::once(async move {
        let _ = ended.await;
        Ok(b"{}".to_vec())
    });
    let waiting =
        post_stream(&daemon.http_client(Some(&other)), reqwest::Body::wrap_stream(begin.chain(rest)));
    let late = (&mut holder.answer).await.unwrap().unwrap();
    assert_eq!(late.status().as_u16(), 408);
    tokio::time::sleep(Duration::from_secs(2)).await;
    end.send(()).unwrap();
    // The daemon read the whole body, which is not a valid message.
    assert_eq!(waiting.await.unwrap().unwrap().status().as_u16(), 400);
}
