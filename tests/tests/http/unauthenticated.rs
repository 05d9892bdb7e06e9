//! Tests of unauthenticated peers that share an IP address with a legitimate AI client. They hold connections, flood
//! the daemon with requests, or send request heads that proxies could parse differently; the AI client must still be
//! served.

use std::time::Duration;

use lockhouse_tests::{Daemon, Lockhouse, Table, ambiguous_heads, ensure, equal, read_to_end, wait_until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::OPEN;
use crate::http::sessions::token;

const PING_BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Returns the text of a complete HTTP request with the MCP request `ping` and this bearer token. `more` has additional
/// header lines, each with its line end.
fn request(daemon: &Daemon, token: &str, more: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{PING_BODY}",
        daemon.address(),
        PING_BODY.len()
    )
}

/// Reads one complete HTTP response. If the connection is closed earlier, returns what has arrived until then.
async fn read_response(connection: &mut TcpStream) -> String {
    let mut read = Vec::new();
    let reading = async {
        loop {
            let text = String::from_utf8_lossy(&read);
            let length = |head: &str| {
                let lengths = head.lines().filter_map(|line| line.strip_prefix("content-length: "));
                lengths.filter_map(|length| length.parse().ok()).next().unwrap_or(0)
            };
            let is_whole = |(head, body): (&str, &str)| match head.contains("transfer-encoding: chunked") {
                true => body.ends_with("0\r\n\r\n"),
                false => body.len() >= length(head),
            };
            if text.split_once("\r\n\r\n").is_some_and(is_whole) {
                return text.into_owned();
            }
            match connection.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(_) => return text.into_owned(),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reading).await.expect("hung: an answer comes")
}

/// Returns whether the daemon has closed the connection, or closes it within 200 ms.
async fn is_closed(connection: &mut TcpStream) -> bool {
    let mut byte = [0];
    let read = tokio::time::timeout(Duration::from_millis(200), connection.read(&mut byte)).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

/// Returns whether a response shows that the daemon accepted the request: its status is neither 401 nor 503.
fn is_admitted(answer: &str) -> bool {
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    status.is_some_and(|status| !["401", "503"].contains(&status))
}

#[tokio::test]
async fn a_client_connects_while_unauthenticated_peers_hold_every_connection() {
    for limits in
        ["connections_per_peer = 20", "connections = 20", "connections = 40\nunauthenticated_percent = 50"]
    {
        let lockhouse = Lockhouse::new().config(&format!("[http.limits]\n{limits}\nhead_seconds = 60\n"));
        let token = token(&lockhouse, "ada");
        let daemon = lockhouse.daemon().await;
        let mut table = Table::new(limits);
        let mut kept = daemon.connection().await;
        kept.write_all(request(&daemon, &token, "").as_bytes()).await.unwrap();
        let first = read_response(&mut kept).await;
        table.row("a client is there first", ensure(is_admitted(&first), &first));
        let mut strangers = Vec::new();
        for _ in 0..60 {
            strangers.push(daemon.connection().await);
        }
        let mut answered = 0;
        for _ in 0..30 {
            let answer = daemon.send(request(&daemon, &token, "Connection: close\r\n")).await;
            answered += usize::from(is_admitted(&answer));
            strangers.push(daemon.connection().await);
        }
        table.row("each new connection of the client is served", equal(answered, 30));
        table.row("the oldest stranger was closed", ensure(is_closed(&mut strangers[0]).await, "it is open"));
        let last = strangers.last_mut().unwrap();
        table.row("control: the youngest was not", ensure(!is_closed(last).await, "it is closed"));
        kept.write_all(request(&daemon, &token, "").as_bytes()).await.unwrap();
        let again = read_response(&mut kept).await;
        table.row("the client's first connection was kept", ensure(is_admitted(&again), &again));
        daemon.wait_for_log("to make room for another one").await;
        table.finish();
    }
}

#[tokio::test]
async fn a_client_is_answered_while_unauthenticated_peers_of_its_address_are_delayed() {
    let limits = "[http.limits]\nunauthenticated_requests_per_peer_per_second = 1\n";
    let lockhouse = Lockhouse::new().config(limits);
    let token = token(&lockhouse, "ada");
    let daemon = lockhouse.daemon().await;
    let bad = request(&daemon, "lh_wrong", "");
    // These requests exceed the burst of their address, so the remaining responses are delayed one by one on each
    // connection.
    let mut strangers = Vec::new();
    for _ in 0..8 {
        let mut stranger = daemon.connection().await;
        stranger.write_all(bad.repeat(60).as_bytes()).await.unwrap();
        strangers.push(tokio::spawn(async move { read_to_end(&mut stranger).await }));
    }
    daemon.wait_for_log("was rejected").await;
    for _ in 0..20 {
        let answer = daemon.send(request(&daemon, &token, "Connection: close\r\n")).await;
        assert!(is_admitted(&answer), "{answer}");
    }
    assert!(
        strangers.iter().all(|stranger| !stranger.is_finished()),
        "answers to strangers were not put off"
    );
    strangers.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn only_a_trusted_proxy_can_name_the_clients_address() {
    let mut table = Table::new("client addresses of requests");
    for (proxies, header, expected) in [
        (
            "[\"127.0.0.1\"]",
            "X-Forwarded-For: 198.51.100.7, 203.0.113.9",
            "203.0.113.9, through a trusted proxy",
        ),
        (
            "[\"127.0.0.0/8\"]",
            "Forwarded: for=203.0.113.9;proto=https",
            "203.0.113.9, through a trusted proxy",
        ),
        ("[\"192.0.2.1\"]", "X-Forwarded-For: 203.0.113.9", "a request from 127.0.0.1:"),
        ("[]", "X-Forwarded-For: 203.0.113.9", "a request from 127.0.0.1:"),
    ] {
        // The limit of one peer does not apply to a trusted proxy, whose connections belong to many clients.
        let config =
            format!("[http]\ntrusted_proxies = {proxies}\n[http.limits]\nconnections_per_peer = 2\n");
        let lockhouse = Lockhouse::new().config(&config);
        let daemon = lockhouse.daemon().await;
        let answer =
            daemon.send(request(&daemon, "lh_wrong", &format!("{header}\r\nConnection: close\r\n"))).await;
        table.row(format!("{header} is refused"), ensure(answer.starts_with("HTTP/1.1 401"), answer));
        let said = daemon.wait_for_log("was rejected: ").await;
        table.row(format!("{header} by {proxies}"), ensure(said.contains(expected), said));
        let is_proxy = proxies.contains("127.");
        let mut connections = Vec::new();
        for _ in 0..6 {
            connections.push(daemon.connection().await);
        }
        let answer = daemon.send(request(&daemon, "lh_wrong", "Connection: close\r\n")).await;
        table.row("another connection is served", ensure(answer.starts_with("HTTP/1.1 401"), answer));
        table.row(
            format!("{proxies}: the first one is kept for a proxy alone"),
            equal(is_closed(&mut connections[0]).await, !is_proxy),
        );
    }
    table.finish();
}

#[tokio::test]
async fn forged_forwarding_headers_do_not_give_a_request_the_proxys_address() {
    let lockhouse = Lockhouse::new().config("[http]\ntrusted_proxies = [\"127.0.0.1\"]\n");
    let token = token(&lockhouse, "ada");
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("headers that a proxy forwards");
    let of_client = "X-Forwarded-For: 203.0.113.9";
    for wrong in [
        format!("{of_client}\r\nForwarded: for=\"x"),
        format!("{of_client}\r\nForwarded: for=203.0.113.8"),
        format!("{of_client}, nobody"),
        "X-Forwarded-For: ".to_owned(),
    ] {
        let said = daemon.send(request(&daemon, &token, &format!("{wrong}\r\nConnection: close\r\n"))).await;
        let is_told = said.starts_with("HTTP/1.1 400") && said.contains("the client of this request");
        table.row(wrong, ensure(is_told, said));
    }
    let logged = daemon.wait_for_log("its client cannot be read").await;
    table.row("the log says it", ensure(logged.contains("a request from the proxy 127.0.0.1:"), logged));
    for right in [format!("{of_client}\r\n"), String::new()] {
        let said = daemon.send(request(&daemon, &token, &format!("{right}Connection: close\r\n"))).await;
        table.row(format!("control: {right:?}"), ensure(is_admitted(&said), said));
    }
    table.finish();
}

#[tokio::test]
async fn an_unauthenticated_client_cannot_hold_a_proxys_connections() {
    let limits = "unauthenticated_requests_per_peer_per_second = 1\nconnections = 4\n";
    let config = format!("[http]\ntrusted_proxies = [\"127.0.0.1\"]\n[http.limits]\n{limits}");
    let lockhouse = Lockhouse::new().config(&config);
    let token = token(&lockhouse, "ada");
    let daemon = lockhouse.daemon().await;
    let stranger = "X-Forwarded-For: 203.0.113.9\r\n";
    let bad = request(&daemon, "lh_wrong", stranger);
    // Half a second for each response would exceed the timeout of `read_response`.
    for _ in 0..4 {
        let mut connection = daemon.connection().await;
        let last = request(&daemon, &token, "X-Forwarded-For: 203.0.113.7\r\nConnection: close\r\n");
        let all = format!("{}{last}", bad.repeat(200));
        connection.write_all(all.as_bytes()).await.unwrap();
        let answers = tokio::time::timeout(Duration::from_secs(30), read_to_end(&mut connection)).await;
        let answers = answers.expect("the answers are not put off");
        assert_eq!(answers.matches("HTTP/1.1 401").count(), 200);
        assert!(is_admitted(&answers[answers.rfind("HTTP/1.1 ").unwrap()..]), "{answers}");
    }
}

#[tokio::test]
async fn an_ambiguous_request_head_is_refused_and_closes_its_connection() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    let mut table = Table::new("HTTP/1 request heads");
    let host = daemon.address();
    let next = format!("GET /live HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let post = |headers: &str, body: &str| {
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n{body}{next}")
    };
    for (name, sent) in ambiguous_heads(&host, "/live") {
        let said = daemon.send(&sent).await;
        let answers = said.matches("HTTP/1.1 ").count();
        table.row(name, ensure(said.starts_with("HTTP/1.1 400") && answers == 1, &said));
        // The response to the previous request on the connection is complete.
        let live = format!("GET /live HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let said = daemon.send(format!("{live}{sent}")).await;
        let is_right = said.starts_with("HTTP/1.1 200") && said.contains("alive\nHTTP/1.1 400");
        table.row(
            format!("{name}, after a request"),
            ensure(is_right && said.matches("HTTP/1.1 ").count() == 2, said),
        );
    }
    let json = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    for (name, sent) in [
        ("control: a length", post(&format!("{json}Content-Length: 2\r\n"), "{}")),
        (
            "control: chunks",
            post(&format!("{json}Transfer-Encoding: chunked\r\n"), "2;x=\"y\"\r\n{}\r\n0\r\n\r\n"),
        ),
        (
            "control: empty lines before a request",
            format!("\r\n\r\n{}", post(&format!("{json}Content-Length: 0\r\n"), "")),
        ),
        ("control: LF in a body", post(&format!("{json}Content-Length: 4\r\n"), "{\n\n}")),
    ] {
        let said = daemon.send(sent).await;
        let is_heard = said.ends_with("alive\n") && said.matches("HTTP/1.1 ").count() == 2;
        table.row(name, ensure(is_heard, said));
    }
    table.finish();
}

#[tokio::test]
async fn sessions_of_one_client_leave_room_for_another_client() {
    let lockhouse = Lockhouse::new().config("[http.limits]\nmcp_sessions = 4\n");
    let (greedy, honest) = (token(&lockhouse, "greedy"), token(&lockhouse, "honest"));
    let daemon = lockhouse.daemon().await;
    let version = "2025-11-25";
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(daemon.session(Some(&greedy), version).await.listen().await);
    }
    let first = daemon.session(Some(&honest), version).await;
    let second = daemon.session(Some(&honest), version).await;
    for _ in 0..6 {
        let _ = daemon.http_client(Some(&greedy)).initialize(version).await;
    }
    let status = async |http_client: &lockhouse_tests::HttpClient| {
        http_client.request("tools/list", serde_json::json!({})).await.status
    };
    wait_until("both are the honest client's", async || {
        ((status(&first).await, status(&second).await) == (200, 200)).then_some(())
    })
    .await;
}
