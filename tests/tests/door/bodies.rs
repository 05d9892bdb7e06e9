//! Bodies that would cost the server much more than their client: refused before anything is made of them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use lockhouse_tests::{Door, Lockhouse, Reply, Table, Visitor, ensure, equal, fixture_server, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::OPEN;
use crate::sessions::token;

/// A server whose tool `echo` clients have directly.
fn direct() -> Lockhouse {
    let server = format!("[servers.fixture]\ncommand = {:?}\nexpose = \"direct\"\n", fixture_server());
    let policy = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    let clients = "[clients]\nrequests = \"1000000/min\"\n";
    Lockhouse::new().config(&format!("{OPEN}{clients}{server}")).policy(policy)
}

/// The most memory that the process ever had.
fn most_memory_mib(door: &Door) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", door.pid())).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// A client over HTTP/2, on a connection of its own.
fn over_http2(door: &Door, token: &str) -> Visitor {
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    Visitor::with_client(client, &door.url("/mcp"), Some(token))
}

/// A request that is being sent, and what was taken of its body so far.
struct Sending {
    answer: JoinHandle<reqwest::Result<reqwest::Response>>,
    taken: Arc<AtomicUsize>,
}

impl Sending {
    /// Of this size, but without its end.
    fn without_end(visitor: &Visitor, bytes: usize) -> Self {
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = taken.clone();
        let parts = futures_util::stream::iter(std::iter::repeat_n([b' '; 10_000], bytes / 10_000));
        let parts = parts.map(move |part| {
            counted.fetch_add(part.len(), Ordering::Relaxed);
            Ok::<_, std::io::Error>(part.to_vec())
        });
        let body = reqwest::Body::wrap_stream(parts.chain(futures_util::stream::pending()));
        Self { answer: post_stream(visitor, body), taken }
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Waits until more was taken than the server takes of one that waits for a place.
    async fn has_place(&self) {
        wait_until("it has a place", async || (self.taken() > 1_000_000).then_some(())).await;
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.answer.abort();
    }
}

fn post_stream(visitor: &Visitor, body: reqwest::Body) -> JoinHandle<reqwest::Result<reqwest::Response>> {
    let request = visitor.http(Method::POST).header("content-type", "application/json");
    tokio::spawn(request.body(body).send())
}

/// A `tools/call` of `echo` with this value, as text: `json!` would sort what must not be sorted.
fn echo(visitor: &Visitor, value: &str, meta: &str) -> String {
    let mut message = visitor.calling("fixture__echo", json!({}));
    let own = message["params"]["_meta"].to_string();
    let own = own.trim_end_matches('}').to_owned() + &format!("}},\"x\":{meta}}}");
    message["params"] = Value::Null;
    let params = format!(r#"{{"_meta":{own},"arguments":{{"value":{value}}},"name":"fixture__echo"}}"#);
    // Before the method: that is what costs rmcp most.
    format!(r#"{{"jsonrpc":"2.0","id":7,"params":{params},"method":"tools/call"}}"#)
}

async fn post(visitor: &Visitor, kind: &str, body: String) -> Reply {
    let request = visitor.http(Method::POST).header("content-type", kind).body(body);
    let request = request.header("mcp-method", "tools/call").header("mcp-name", "fixture__echo");
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Reply { status, headers, body: response.text().await.unwrap_or_default() }
}

/// The HTTP status, the error of JSON-RPC, and whether its text has these words.
fn refused(reply: &Reply, status: u16, code: i64, words: &str) -> Result<(), String> {
    let error = &reply.answer()["error"];
    let says = error["message"].as_str().is_some_and(|message| message.contains(words));
    ensure(reply.status == status && error["code"] == code && says, reply)
}

#[tokio::test]
async fn a_body_that_would_cost_much_is_refused_before_anything_is_made_of_it() {
    let lockhouse = direct();
    let door = lockhouse.door().await;
    let visitor = door.visitor(None);
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
    // What serde_json makes of this is a list of a million values.
    let read_as_json =
        format!(r#"{{"\u0024serde_json::private::RawValue":"[{}0]"}}"#, "0,".repeat(1_000_000));
    let mut table = Table::new("bodies");
    let json = "application/json";
    let small = echo(&visitor, "[1, \"}\\\"\", {\"a\": null}]", "0");
    let reply = post(&visitor, json, small).await;
    let content = &reply.answer()["result"]["structuredContent"]["value"];
    table.row("control: a call is passed on", equal(content, &json!([1, "}\"", {"a": null}])));
    let before = most_memory_mib(&door);
    let flood = (0..8).map(|_| post(&visitor, json, echo(&visitor, &list("{}", 1_900_000), "0")));
    for reply in futures_util::future::join_all(flood).await {
        table.row("empty objects, 1.9 MB", refused(&reply, 413, -32_600, "more than 10000 JSON values"));
    }
    for (name, body, status, words) in [
        ("empty objects, 60 KB", echo(&visitor, &list("{}", 60_000), "0"), 413, "10000 JSON values"),
        ("metadata of 600 members", echo(&visitor, "0", &members(600)), 413, "500 JSON values"),
        ("metadata of 300 KB", echo(&visitor, "0", &format!("{:?}", "x".repeat(300_000))), 413, "256 KiB"),
        ("many levels", echo(&visitor, &nested(110), "0"), 400, "more than 100 levels"),
        ("a text that would be read as JSON", echo(&visitor, &read_as_json, "0"), 400, "RawValue"),
        ("the same in metadata", echo(&visitor, "0", &read_as_json), 400, "RawValue"),
    ] {
        table.row(name, refused(&post(&visitor, json, body).await, status, -32_600, words));
    }
    for kind in [json, "Application/JSON", " application/json ; charset=utf-8"] {
        let reply = post(&visitor, kind, echo(&visitor, &nested(1_000_000), "0")).await;
        table.row(format!("a million levels, as {kind:?}"), refused(&reply, 400, -32_600, "levels"));
    }
    let grown = most_memory_mib(&door) - before;
    table.row("memory, MiB", ensure(grown < 60, grown));
    let numbers = list("7", 19_000);
    let reply = post(&visitor, json, echo(&visitor, &numbers, &members(450))).await;
    let echoed = reply.answer()["result"]["structuredContent"]["value"].to_string();
    table.row("control: 9500 values in arguments, 450 beside them", equal(echoed, numbers));
    table.finish();
}

#[tokio::test]
async fn the_largest_program_fits_into_a_body_whatever_it_is_made_of() {
    // In JSON each of these characters takes six bytes.
    let program = |kib: usize| format!("len('{}')", "\u{1}".repeat(kib * 1024));
    for (limits, kib) in [("", 255), ("[limits]\ncode_kib = 1024\n", 1_023)] {
        let door = Lockhouse::new().config(&format!("{OPEN}{limits}")).door().await;
        let answer = door.visitor(None).run_code("python", &program(kib)).await;
        assert_eq!(answer["value"], json!(kib * 1024), "{limits}: {answer}");
        let reply = {
            let visitor = door.visitor(None);
            visitor.post(&visitor.calling("run_code", json!({"code": program(kib * 2)}))).await
        };
        let told = format!("at most {} KiB", (kib + 1) * 6 + 512);
        assert_eq!(refused(&reply, 413, -32_600, &told), Ok(()), "{limits}");
    }
}

#[tokio::test]
async fn who_writes_a_whole_body_before_it_reads_is_told_why_it_is_refused() {
    let config = "[clients]\nrequests = \"60/h\"\n[http.limits]\nbody_kib = 8192\n";
    let lockhouse = Lockhouse::new().config(config);
    let names = ["announced", "chunks", "indebted"];
    let [announced, chunks, indebted] = names.map(|name| token(&lockhouse, name));
    let door = lockhouse.door().await;
    let head = |token: &str, more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{more}\r\n\r\n",
            door.address()
        )
    };
    let mut table = Table::new("bodies that are written whole before the answer is read");
    // More than the buffers of a connection hold: it is written only if it is read.
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
        let mut connection = door.connection().await;
        connection.write_all(head.as_bytes()).await.unwrap();
        let written = connection.write_all(body.as_bytes()).await.map_err(|error| error.to_string());
        table.row(format!("{what}: written"), written);
        table.row(format!("{what}: answered"), answered(&mut connection, expected).await);
    }
    // It is admitted, and then others of its requests cost more than it has.
    let mut connection = door.connection().await;
    let body = " ".repeat(8_000_000);
    let head = head(&indebted, &format!("Expect: 100-continue\r\nContent-Length: {}", body.len()));
    connection.write_all(head.as_bytes()).await.unwrap();
    table.row("in debt: control: it is let in", answered(&mut connection, "100").await);
    let visitor = door.visitor(Some(&indebted));
    let values = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {"x": vec![0; 9_000]}}});
    post(&visitor, "application/json", values.to_string()).await;
    let written = connection.write_all(body.as_bytes()).await.map_err(|error| error.to_string());
    table.row("in debt: written", written);
    table.row("in debt: answered", answered(&mut connection, "429").await);
    table.finish();
}

/// Whether the next answer has this status.
async fn answered(connection: &mut TcpStream, status: &str) -> Result<(), String> {
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
async fn who_sends_large_bodies_slowly_keeps_no_other_client_waiting() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbody_seconds = 600\n");
    let [slow, other] = ["slow", "other"].map(|name| {
        let made = lockhouse.run(&["token", "create", name]);
        made.stdout.trim_end().to_owned()
    });
    let door = lockhouse.door().await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {slow}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n",
        door.address()
    );
    let mut open = Vec::new();
    for _ in 0..40 {
        let mut connection = door.connection().await;
        let part = format!("{head}{}", " ".repeat(90_000));
        connection.write_all(part.as_bytes()).await.unwrap();
        open.push(connection);
    }
    let code = format!("len('{}')", "x".repeat(200_000));
    let answer = door.visitor(Some(&other)).run_code("python", &code).await;
    assert_eq!(answer["value"], 200_000, "{answer}");
    // The slow client's own large body has to wait, and its small ones have not.
    let answer = door.visitor(Some(&slow)).run_code("python", "1 + 1").await;
    assert_eq!(answer["value"], 2, "{answer}");
    drop(open);
}

#[tokio::test]
async fn what_clients_of_http2_send_ahead_while_they_wait_takes_little_memory() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbody_seconds = 600\nbodies_mib = 2\n");
    let [slow, other] = ["slow", "other"].map(|name| token(&lockhouse, name));
    let door = lockhouse.door().await;
    let answer = over_http2(&door, &other).run_code("python", "1 + 1").await;
    assert_eq!(answer["value"], 2, "{answer}");
    let before = most_memory_mib(&door);
    let holder = Sending::without_end(&over_http2(&door, &slow), 1_900_000);
    holder.has_place().await;
    let waiting: Vec<_> =
        (0..200).map(|_| Sending::without_end(&over_http2(&door, &slow), 1_900_000)).collect();
    let mut last = Vec::new();
    wait_until("each has sent as much as it may", async || {
        let taken: Vec<usize> = waiting.iter().map(Sending::taken).collect();
        let is_all = taken.iter().all(|taken| *taken > 64 * 1024) && taken == last;
        last = taken;
        tokio::time::sleep(Duration::from_millis(300)).await;
        is_all.then_some(())
    })
    .await;
    let grown = most_memory_mib(&door) - before;
    assert!(grown < 60, "{grown} MiB for 200 requests that wait");
    assert!(waiting.iter().all(|sending| !sending.answer.is_finished()), "they wait");
}

#[tokio::test]
async fn requests_that_wait_for_a_place_stop_no_other_on_their_connection_of_http2() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbodies_mib = 2\n");
    let (slow, own) = (token(&lockhouse, "slow"), token(&lockhouse, "own"));
    let door = lockhouse.door().await;
    let holder = Sending::without_end(&over_http2(&door, &slow), 1_900_000);
    holder.has_place().await;
    let shared = over_http2(&door, &own);
    let mut large: Vec<_> = (0..6).map(|_| Sending::without_end(&shared, 1_900_000)).collect();
    wait_until("those that may not wait are told", async || {
        (large.iter().filter(|sending| sending.answer.is_finished()).count() == 4).then_some(())
    })
    .await;
    for sending in large.iter_mut().filter(|sending| sending.answer.is_finished()) {
        let answer = (&mut sending.answer).await.unwrap().unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (503, &b"2"[..]));
    }
    // Together they are larger than the window of the connection, of which those that wait leave a part.
    let code = format!("len('{}')", "x".repeat(60_000));
    for _ in 0..5 {
        let answer = shared.run_code("python", &code).await;
        assert_eq!(answer["value"], 60_000, "{answer}");
    }
}

#[tokio::test]
async fn a_body_has_all_of_its_time_after_it_has_waited_for_a_place() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nbodies_mib = 2\nbody_seconds = 4\n");
    let (slow, other) = (token(&lockhouse, "slow"), token(&lockhouse, "other"));
    let door = lockhouse.door().await;
    let mut holder = Sending::without_end(&over_http2(&door, &slow), 1_900_000);
    holder.has_place().await;
    // Waits for most of its four seconds, and its end comes two seconds later.
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let begin = futures_util::stream::once(async { Ok::<_, std::io::Error>(vec![b' '; 90_000]) });
    let rest = futures_util::stream::once(async move {
        let _ = ended.await;
        Ok(b"{}".to_vec())
    });
    let waiting = post_stream(&door.visitor(Some(&other)), reqwest::Body::wrap_stream(begin.chain(rest)));
    let late = (&mut holder.answer).await.unwrap().unwrap();
    assert_eq!(late.status().as_u16(), 408);
    tokio::time::sleep(Duration::from_secs(2)).await;
    end.send(()).unwrap();
    // It was read whole, and is no message.
    assert_eq!(waiting.await.unwrap().unwrap().status().as_u16(), 415);
}
