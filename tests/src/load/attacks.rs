//! The attacks of `load-attacks`. Each attack runs in a separate process of this program with the lowest priority. In
//! reality an attacker computes on another machine, so here its computing must not slow down the server.

use std::io::{Error, Result};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::Fallible;
use super::daemon::KilledChild;
use super::http_connection::{Connection, Era, HONEST, HOSTILE, connect};

/// The environment variable with the name of the attack. A process of this program acts as the attacker if this
/// variable and [`TOKEN`] are set.
const NAME: &str = "LOAD_ATTACK";
/// The environment variable with the token of the attacking client.
const TOKEN: &str = "LOAD_ATTACK_TOKEN";

/// The number of concurrent requests in attacks with large request bodies.
const BODIES: usize = 48;
const BODY_BYTES: usize = 4_000_000;
/// The size in bytes of a request body that is large, but that the server still accepts. The body consists of small
/// objects.
const ACCEPTED_BYTES: usize = 250_000;
/// The number of unauthenticated connections that send nothing, in attacks with idle connections.
const IDLE: usize = 320;
/// The number of concurrent calls to the hostile upstream server, in attacks by that server.
const CALLS: usize = 4;
/// The pause of an attacker after a refused request.
const PAUSE: Duration = Duration::from_millis(20);
/// The time after which an attacker reopens an idle connection that the server has closed.
const REOPENED_AFTER: Duration = Duration::from_secs(1);

/// One attack that `load-attacks` measures, by AI clients or by an upstream server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The name by which the hostile upstream server is ordered to carry out the attack; `None` for an attack by AI
    /// clients.
    pub(crate) upstream: Option<&'static str>,
}

const fn client(name: &'static str, what: &'static str) -> Attack {
    Attack { name, what, upstream: None }
}

const fn upstream(name: &'static str, what: &'static str) -> Attack {
    Attack { name, what, upstream: Some(name) }
}

/// All attacks that `load-attacks` measures.
pub(crate) const ATTACKS: [Attack; 9] = [
    client("bodies", "48 requests with bodies of 4 MB of small objects, of one token"),
    client("small-bodies", "48 requests with bodies of 250 KB of small objects, of one token"),
    client("connections", "320 idle connections without a token, of the honest clients' address"),
    client(
        "churn",
        "320 connections without a token, of the honest clients' address, opened again as they are closed",
    ),
    upstream("ids", "an upstream server asks with ids of 900 KB"),
    upstream("notifications", "an upstream server sends notifications of 1 MB of empty arrays"),
    upstream("line", "an upstream server sends a line without an end"),
    upstream("small", "an upstream server sends small notifications without a pause"),
    upstream("results", "an upstream server answers each call with 1 MB of empty arrays"),
];

impl Attack {
    /// Starts the attacking process, which sends its requests to the server at `host` with this token.
    pub(crate) fn start(self, host: &str, token: &str) -> Fallible<KilledChild> {
        let mut command = Command::new("chrt");
        command.args(["--idle", "0"]).arg(std::env::current_exe()?).arg(host);
        Ok(KilledChild(command.env(NAME, self.name).env(TOKEN, token).spawn()?))
    }

    /// Orders the hostile upstream server to start its attack (if `attacks` is true) or to stop it, by writing the file
    /// `address`, which that server reads.
    pub(crate) fn order(self, address: &Path, attacks: bool) -> Result<()> {
        let order = if attacks { self.upstream.unwrap_or_default() } else { "" };
        std::fs::write(address, order)
    }
}

/// Attacks until this process is killed, if it was started as an attacking process; otherwise returns at once.
pub(crate) async fn attack_if_requested() {
    let (Ok(name), Ok(token)) = (std::env::var(NAME), std::env::var(TOKEN)) else { return };
    let host = std::env::args().nth(1).unwrap_or_default();
    let mut ways = JoinSet::new();
    let count = match name.as_str() {
        "bodies" | "small-bodies" => BODIES,
        "connections" | "churn" => IDLE,
        _ => CALLS,
    };
    let size = if name == "bodies" { BODY_BYTES } else { ACCEPTED_BYTES };
    let body: &'static str = Box::leak(small_objects(size).into_boxed_str());
    for _ in 0..count {
        let (name, host, token) = (name.clone(), host.clone(), token.clone());
        ways.spawn(async move {
            loop {
                let done = match name.as_str() {
                    "bodies" | "small-bodies" => post(&host, &token, body).await,
                    "connections" => idle(&host, REOPENED_AFTER).await,
                    "churn" => idle(&host, PAUSE).await,
                    _ => call(&host, &token).await,
                };
                if done.is_err() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        });
    }
    while ways.join_next().await.is_some() {}
}

/// Creates a `run_code` call of about `size` bytes, with an argument that consists of small objects.
fn small_objects(size: usize) -> String {
    let objects = vec!["{\"a\":0}"; size / 8].join(",");
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"run_code","arguments":{{"language":"python","code":"1","x":[{objects}]}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"load","version":"1"}}}}}}}}"#
    )
}

async fn post(host: &str, token: &str, body: &str) -> Result<()> {
    let mut stream = connect(host, HOSTILE).await?;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: run_code\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(()) } else { Err(Error::other("refused")) }
}

/// Opens a connection to `host` and sends nothing until the server closes the connection; then waits for
/// `reopened_after`, so that the caller does not reopen the connection earlier.
async fn idle(host: &str, reopened_after: Duration) -> Result<()> {
    let mut stream = connect(host, HONEST).await?;
    let closed = stream.read_to_end(&mut Vec::new()).await;
    tokio::time::sleep(reopened_after).await;
    closed.map(|_| ())
}

async fn call(host: &str, token: &str) -> Result<()> {
    let mut connection = Connection::open(host, HOSTILE, token, Era::Stateless).await?;
    loop {
        let code = "from mcp_tools.hostile import ping\nlen(str(ping()))";
        connection.call("run_code", json!({"language": "python", "code": code, "timeout_s": 5})).await?;
        tokio::time::sleep(PAUSE).await;
    }
}
