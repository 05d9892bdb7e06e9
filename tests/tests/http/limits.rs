//! Tests of the daemon's limits on connections, header sizes, timeouts and request rates: a peer that exceeds a limit
//! is disconnected or refused, and other peers are still served.

use std::time::{Duration, Instant};

use lockhouse_tests::{Daemon, LATEST_VERSION, Lockhouse, Table, ensure, equal, read_to_end, wait_until};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::http::OPEN;

async fn daemon(lockhouse: &Lockhouse) -> Daemon {
    lockhouse.daemon().await
}

fn limited(limits: &str) -> Lockhouse {
    Lockhouse::new().config(&format!("{OPEN}[http.limits]\n{limits}\n"))
}

fn head(daemon: &Daemon, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\n{more}",
        daemon.address()
    )
}

/// Checks that the daemon still serves a well-behaved client. Every test case uses this as its positive control.
async fn check_still_serves(daemon: &Daemon) -> Result<(), String> {
    equal(daemon.http_client(None).run_code("python", "1 + 1").await["value"].clone(), json!(2))
}

#[tokio::test]
async fn slow_senders_are_disconnected() {
    let lockhouse = limited("head_seconds = 0.5\nbody_seconds = 0.5\nkeep_alive_seconds = 1");
    let daemon = daemon(&lockhouse).await;
    let mut table = Table::new("slow unauthenticated peers");
    let (none, half) = (String::new(), head(&daemon, ""));
    let half_body = head(&daemon, "Content-Length: 100\r\n\r\n{");
    let chunk = head(&daemon, "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n");
    let whole = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address());
    for (name, sent, answer) in [
        ("nothing at all", none.clone(), ""),
        ("half of the first line", "POST /m".into(), ""),
        ("half of the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nS".into(), ""),
        ("the preface of HTTP/2 alone", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), ""),
        ("half of a head", half.clone(), ""),
        ("a part of the body", half_body, "HTTP/1.1 408"),
        ("a part of the chunks", chunk, "HTTP/1.1 408"),
        ("a request, and then nothing", whole.clone(), "HTTP/1.1 404"),
        ("a request, and then half of one", format!("{whole}{half}"), "HTTP/1.1 404"),
    ] {
        let said = daemon.send(sent).await;
        let holds = said.starts_with(answer) && (!answer.is_empty() || !said.starts_with("HTTP/1.1"));
        table.row(name, ensure(holds, said));
    }
    // One byte at a time does not extend the timeout.
    let mut connection = daemon.connection().await;
    let dripping = async {
        let mut drops = tokio::time::interval(Duration::from_millis(20));
        for byte in head(&daemon, &"X: y\r\n".repeat(1_000)).into_bytes() {
            drops.tick().await;
            if connection.write_all(&[byte]).await.is_err() {
                return true;
            }
        }
        false
    };
    table.row("a byte at a time", ensure(dripping.await, "the whole head was taken"));
    table.row("control", check_still_serves(&daemon).await);
    table.finish();
}

#[tokio::test]
async fn oversized_requests_are_refused_and_not_buffered() {
    let lockhouse = limited("body_kib = 64\nhead_kib = 8\nheaders = 16");
    let daemon = daemon(&lockhouse).await;
    let mut table = Table::new("large requests");
    let large = "x".repeat(65 * 1024);
    let long = format!("X: {}\r\n\r\n", "y".repeat(64 * 1024));
    for (name, sent, answer) in [
        ("a body that is announced", head(&daemon, "Content-Length: 4000000000\r\n\r\n"), "413"),
        ("a body", head(&daemon, &format!("Content-Length: {}\r\n\r\n{large}", large.len())), "413"),
        (
            "a body in chunks",
            head(
                &daemon,
                &format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n", large.len()),
            ),
            "413",
        ),
        ("a long header", head(&daemon, &long), "431"),
        ("many headers", head(&daemon, &format!("{}\r\n", "X: y\r\n".repeat(100))), "431"),
        ("a long URL", format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(64 * 1024)), "4"),
        ("garbage", "\u{1}\u{2}\u{3}garbage\r\n\r\n".into(), "400"),
        ("a handshake of TLS", "\u{16}\u{3}\u{1}\u{2}\r\n\r\n".into(), "400"),
        ("two lengths", head(&daemon, "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"), "400"),
        ("a length that is none", head(&daemon, "Content-Length: x\r\n\r\n{}"), "400"),
    ] {
        let said = daemon.send(sent).await;
        table.row(name, ensure(said.starts_with(&format!("HTTP/1.1 {answer}")), said));
    }
    let http_client = daemon.http_client(None);
    let code = format!("len('{}')", "x".repeat(60 * 1024));
    table.row(
        "control: as large as may be",
        equal(&http_client.run_code("python", &code).await["value"], &json!(61_440)),
    );
    table.row("control", check_still_serves(&daemon).await);
    table.finish();
}

#[tokio::test]
async fn a_new_connection_is_accepted_when_one_at_the_limit_closes() {
    for limits in ["connections = 4", "connections_per_peer = 4"] {
        let lockhouse = limited(&format!("{limits}\nbody_seconds = 60"));
        let daemon = daemon(&lockhouse).await;
        let mut open = Vec::new();
        for _ in 0..4 {
            let mut connection = daemon.connection().await;
            // The daemon asks for the body once the request is admitted. From then on the connection is in use and is
            // not closed for a new one.
            let begun = head(&daemon, "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n");
            connection.write_all(begun.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            connection.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 100");
            open.push(connection);
        }
        let refused = daemon.send(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address())).await;
        assert!(
            refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After: "),
            "{limits}: {refused}"
        );
        daemon.wait_for_log("a connection was refused").await;
        drop(open);
        let served = wait_until("there is a place again", async || {
            let message =
                daemon.http_client(None).calling("run_code", json!({"language": "python", "code": "2"}));
            let reply = daemon.http_client(None).try_post(&message).await.ok()?;
            (reply.status == 200).then(|| reply.answer())
        });
        assert_eq!(served.await["result"]["structuredContent"]["value"], 2, "{limits}");
    }
}

#[tokio::test]
async fn unauthenticated_requests_above_the_rate_are_delayed_and_answered() {
    let lockhouse = limited("unauthenticated_requests_per_peer_per_second = 4");
    let daemon = daemon(&lockhouse).await;
    let asked = Instant::now();
    let live = format!("GET /live HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", daemon.address());
    for _ in 0..22 {
        let answer = daemon.send(&live).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The daemon answers sixteen requests at once, and then one every quarter of a second.
    assert!(asked.elapsed() >= Duration::from_millis(1_400), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn running_out_of_file_descriptors_pauses_the_acceptor() {
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[pool]\nidle = 1\n"));
    let shell = "ulimit -n 90; exec \"$0\" \"$@\"";
    let served = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", shell]).arg(served.get_program()).args(served.get_args()).env_clear();
    command.envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let daemon = Daemon::open(command).await;
    assert_eq!(check_still_serves(&daemon).await, Ok(()));
    let mut open = Vec::new();
    for _ in 0..120 {
        open.push(daemon.connection().await);
    }
    daemon.wait_for_log("cannot accept connections").await;
    drop(open);
    assert_eq!(check_still_serves(&daemon).await, Ok(()));
}

#[tokio::test]
async fn no_timeout_cuts_off_a_long_run() {
    let lockhouse =
        limited("head_seconds = 0.3\nbody_seconds = 0.3\nkeep_alive_seconds = 0.3\nstall_seconds = 0.3");
    let daemon = daemon(&lockhouse).await;
    let mut table = Table::new("answers that take longer than every limit");
    let code = "import time\ntime.sleep(1.5)\n'done'";
    for version in ["2025-06-18", LATEST_VERSION] {
        let http_client = match version {
            LATEST_VERSION => daemon.http_client(None),
            earlier => daemon.session(None, earlier).await,
        };
        table.row(
            format!("a run, {version}"),
            equal(&http_client.run_code("python", code).await["value"], &json!("done")),
        );
    }
    let session = daemon.session(None, "2025-11-25").await;
    let mut events = session.listen().await;
    table.row("a stream of a session opens", equal(events.status, 200));
    let answer = session.run_code("python", code).await;
    table.row("a run beside it", equal(&answer["value"], &json!("done")));
    let ended = tokio::time::timeout(Duration::from_millis(100), events.next()).await;
    table.row("the stream is still open", ensure(ended.is_err(), ended));
    table.finish();
}

#[tokio::test]
async fn a_client_that_reads_no_responses_is_disconnected() {
    let clients = "[clients]\nrequests = \"1000000/min\"\n";
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}[http.limits]\nstall_seconds = 0.5\n{clients}"));
    let daemon = daemon(&lockhouse).await;
    // Requests whose responses are never read, until the socket buffers are full.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut connection = socket.connect(daemon.address().parse().unwrap()).await.unwrap();
    let message = daemon.http_client(None).message("tools/list", json!({})).to_string();
    let more = format!(
        "MCP-Protocol-Version: {LATEST_VERSION}\r\nMCP-Method: tools/list\r\nContent-Length: {}\r\n\r\n{message}",
        message.len()
    );
    let request = head(&daemon, &more);
    let flooding = async { while connection.write_all(request.repeat(10).as_bytes()).await.is_ok() {} };
    tokio::time::timeout(Duration::from_secs(40), flooding).await.expect("it is closed");
    assert_eq!(check_still_serves(&daemon).await, Ok(()));
}

#[tokio::test]
async fn a_connection_serves_many_requests_over_http1_and_http2() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = daemon(&lockhouse).await;
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let http_client = lockhouse_tests::HttpClient::with_client(client, &daemon.url("/mcp"), None);
    let many = (0..6).map(|number| {
        let http_client = http_client.clone();
        async move { http_client.run_code("python", &format!("{number}")).await["value"] == json!(number) }
    });
    assert!(futures_util::future::join_all(many).await.into_iter().all(|right| right));
    let mut connection = TcpStream::connect(daemon.address()).await.unwrap();
    for _ in 0..3 {
        let request = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", daemon.address());
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        connection.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 404");
        let mut rest = vec![0; 4096];
        let _ = connection.read(&mut rest).await.unwrap();
    }
    connection.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(read_to_end(&mut connection).await.starts_with("HTTP/1.1 400"));
}
