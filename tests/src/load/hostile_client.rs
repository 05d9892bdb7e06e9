//! The hostile client of load tests, which has a valid token and harms the other clients as much as it can.

use std::io::Result;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::http_connection::{Connection, Era, HOSTILE};
use super::stream::connect;

const FLOODS: usize = 32;
const HALF_OPEN: usize = 200;
const HUGE: usize = 4;
const CANCELLED: usize = 16;
/// The pause of the hostile client after a refused connection.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs all attacks of the hostile client at the same time, until this future is dropped.
pub(crate) async fn attack_all(host: String, token: String) {
    let mut ways = tokio::task::JoinSet::new();
    let mut go = |count: usize, way: fn(String, String) -> AttackFuture| {
        for _ in 0..count {
            let (host, token) = (host.clone(), token.clone());
            ways.spawn(async move {
                loop {
                    if way(host.clone(), token.clone()).await.is_err() {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            });
        }
    };
    go(FLOODS, |host, token| Box::pin(flood(host, token)));
    go(HALF_OPEN, |host, _| Box::pin(half_open(host)));
    go(HUGE, |host, token| Box::pin(huge(host, token)));
    go(CANCELLED, |host, token| Box::pin(cancelled(host, token)));
    while ways.join_next().await.is_some() {}
}

type AttackFuture = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Attack: sends one `run_code` request after another, without a pause.
async fn flood(host: String, token: String) -> Result<()> {
    let mut connection = Connection::open(&host, HOSTILE, &token, Era::Stateless).await?;
    loop {
        let code = if fastrand::bool() { "while True: pass" } else { "'x' * 100_000" };
        let run = json!({"language": "python", "code": code, "timeout_s": 1});
        connection.call("run_code", run).await?;
    }
}

/// Attack: sends half of an HTTP request and keeps the connection open.
async fn half_open(host: String) -> Result<()> {
    let mut stream = connect(&host, HOSTILE).await?;
    stream.write_all(format!("POST /mcp HTTP/1.1\r\nhost: {host}\r\nx-slow: ").as_bytes()).await?;
    let mut answered = Vec::new();
    stream.read_to_end(&mut answered).await?;
    Ok(())
}

/// Attack: sends a request body that does not end.
async fn huge(host: String, token: String) -> Result<()> {
    let mut stream = connect(&host, HOSTILE).await?;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let chunk = format!("10000\r\n{}\r\n", "[".repeat(0x10000));
    loop {
        stream.write_all(chunk.as_bytes()).await?;
    }
}

/// Attack: sends a `run_code` request and disconnects without waiting for the answer.
async fn cancelled(host: String, token: String) -> Result<()> {
    let mut connection = Connection::open(&host, HOSTILE, &token, Era::Stateless).await?;
    let run = json!({"name": "run_code", "arguments": {"language": "typescript", "code": "for (;;) {}"}});
    connection.ask("tools/call", Some("run_code"), run).await?;
    tokio::time::sleep(Duration::from_millis(fastrand::u64(..50))).await;
    Ok(())
}
