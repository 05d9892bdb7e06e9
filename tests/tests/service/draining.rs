//! Tests of draining: after SIGTERM, the daemon lets active runs end and refuses new runs.

use std::io::ErrorKind;

use futures_util::future::join_all;
use lockhouse_tests::{Lockhouse, Table, ensure, equal, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::{OPEN, get, sleeping, wait_for_running, wait_until_ready};

#[tokio::test]
async fn while_draining_runs_in_flight_are_answered_and_new_ones_get_a_retry_time() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    let (modern, legacy) = (daemon.http_client(None), daemon.session(None, "2025-11-25").await);
    let run = |of: &lockhouse_tests::HttpClient| {
        let of = of.clone();
        tokio::spawn(async move { of.run_code("python", &sleeping(2.0)).await })
    };
    let under_way = [run(&modern), run(&legacy)];
    wait_for_running(&daemon, 2).await;
    let mut stream = legacy.listen().await;
    daemon.signal(Signal::SIGTERM);
    daemon.wait_for_log("draining: 2 runs").await;
    let mut table = Table::new("during draining");
    let (status, words) = get(&daemon, "/ready").await;
    table.row("not ready", ensure(status == 503 && words.contains("is draining"), &words));
    table.row("it lives", equal(get(&daemon, "/live").await.0, 200));
    for (name, http_client) in [("2026-07-28", &modern), ("2025-11-25", &legacy)] {
        let message = http_client.calling("run_code", json!({"language": "python", "code": "1"}));
        let reply = http_client.post(&message).await;
        let answer = reply.answer();
        table.row(format!("{name}: a run is refused"), equal(reply.status, 503));
        table.row(
            format!("{name}: when to retry"),
            ensure(reply.header("retry-after").parse::<u64>().is_ok(), &reply),
        );
        table.row(
            format!("{name}: in words"),
            ensure(
                answer["error"]["message"].as_str().is_some_and(|words| words.contains("restarting")),
                &reply,
            ),
        );
        table.row(format!("{name}: of its request"), equal(&answer["id"], &message["id"]));
        let kept = http_client.call("get_result", json!({"handle": "0".repeat(32)})).await;
        table.row(
            format!("{name}: results can be had"),
            ensure(kept["error"]["message"].as_str().is_some_and(|words| words.contains("no result")), &kept),
        );
    }
    for run in under_way {
        let answer = run.await.unwrap();
        table.row("what was under way has its answer", equal(&answer["value"], &json!("done")));
    }
    let rest = wait_until("the stream ends", async || Some(stream.next().await)).await;
    table.row("streams end", equal(rest, None));
    let ended = daemon.ended().await;
    table.row("exit status", equal(ended.status, Some(0)));
    table.row("the log says nothing of a fault", ensure(!ended.stderr.contains("ERROR"), &ended.stderr));
    table.finish();
}

#[tokio::test]
async fn runs_beyond_the_drain_timeout_are_cancelled_with_a_reason() {
    let lockhouse = Lockhouse::with_fixture().config(&format!("{OPEN}[service]\ndrain_seconds = 0.3\n"));
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    let mut table = Table::new("interrupted runs");
    let mut waiting = Vec::new();
    for (version, http_client) in
        [("2026-07-28", daemon.http_client(None)), ("2025-06-18", daemon.session(None, "2025-06-18").await)]
    {
        let run = tokio::spawn(async move { http_client.run_code("python", &sleeping(60.0)).await });
        waiting.push((version, run));
    }
    wait_for_running(&daemon, 2).await;
    daemon.signal(Signal::SIGTERM);
    for (version, run) in waiting {
        let answer = run.await.unwrap();
        table.row(format!("{version}: status"), equal(&answer["status"], &json!("cancelled")));
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        table.row(
            format!("{version}: in words"),
            ensure(told.contains("Lockhouse is shutting down"), &answer),
        );
    }
    table.row("exit status", equal(daemon.ended().await.status, Some(0)));
    table.finish();
}

#[tokio::test]
async fn a_second_signal_ends_the_daemon_at_once() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    let http_client = daemon.http_client(None);
    let run = tokio::spawn(async move { http_client.run_code("python", &sleeping(25.0)).await });
    wait_for_running(&daemon, 1).await;
    daemon.signal(Signal::SIGTERM);
    daemon.wait_for_log("draining: 1 runs").await;
    daemon.signal(Signal::SIGTERM);
    assert_eq!(daemon.ended().await.status, Some(0));
    drop(run);
}

#[tokio::test]
async fn over_stdio_a_signal_ends_the_server_without_draining() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let answer = session.run_code("python", "1").await;
    assert_eq!(answer["status"], "ok");
    let _run = session.start_code("python", &sleeping(25.0));
    let ended = session.terminate().await;
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
}

/// Clients that make one connection after the other while the daemon ends.
const CLIENTS: usize = 16;

/// What a client gets for a request on a new connection. A balancer may send a request that was refused to another host. It must
/// not do so with one whose connection is closed without an answer.
#[derive(Debug, PartialEq, Eq)]
enum OnNewConnection {
    Answered,
    Refused,
    Lost(String),
}

async fn ask_on_new_connection(address: &str) -> OnNewConnection {
    let mut stream = match TcpStream::connect(address).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return OnNewConnection::Refused,
        Err(error) => return OnNewConnection::Lost(error.to_string()),
    };
    let request = format!("GET /live HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    let asked = async {
        stream.write_all(request.as_bytes()).await?;
        stream.read_to_string(&mut answer).await
    };
    match asked.await {
        Ok(_) if answer.starts_with("HTTP/1.1 200 ") => OnNewConnection::Answered,
        Ok(_) => OnNewConnection::Lost(format!("the answer {answer:?}")),
        Err(error) => OnNewConnection::Lost(error.to_string()),
    }
}

#[tokio::test]
async fn until_the_daemon_ends_each_new_connection_is_answered_or_refused() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let daemon = lockhouse.daemon().await;
    wait_until_ready(&daemon).await;
    let address = daemon.address().to_string();
    let clients = (0..CLIENTS).map(|_| async {
        let mut answered = 0;
        loop {
            match ask_on_new_connection(&address).await {
                OnNewConnection::Answered => answered += 1,
                OnNewConnection::Refused => return Ok(answered),
                OnNewConnection::Lost(why) => return Err(why),
            }
        }
    });
    let (results, ()) = tokio::join!(join_all(clients), async {
        daemon.signal(Signal::SIGTERM);
    });
    let mut table = Table::new("requests on new connections while a daemon ends");
    for (number, result) in results.into_iter().enumerate() {
        table.row(
            format!("client {number}"),
            ensure(result.as_ref().is_ok_and(|answered| *answered > 0), &result),
        );
    }
    table.row("exit status", equal(daemon.ended().await.status, Some(0)));
    table.finish();
}
