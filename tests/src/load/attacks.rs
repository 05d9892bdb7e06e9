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
use super::hostile_streams::{abort_handshake, connect_http2};
use super::http_connection::{Connection, Era, HONEST, HOSTILE};
use super::stream::{TLS, connect, without_scheme};

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
/// The pause between two bytes of a slow body.
const SLOW_PAUSE: Duration = Duration::from_secs(1);
/// Number of requests on one connection of HTTP/2.
const RESETS_MAX: u32 = 1_000;
/// The `_meta` of each request of protocol version 2026-07-28.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"}}"#;
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
pub(crate) const ATTACKS: [Attack; 14] = [
    client(
        "all",
        "the next five and 48 bodies of 4 MB and 320 idle connections, at one time, of another address",
    ),
    client("slow-bodies", "48 requests with a token that send their body one byte a second"),
    client("slow-readers", "48 connections with a token that request lists and read no answer"),
    client("resets", "16 connections of HTTP/2 whose requests are reset as they are sent"),
    client("handshakes", "8 clients that abort one TLS handshake after the other when it is signed"),
    client("churn", "320 connections without a token, opened again as they are closed"),
    client("bodies", "48 requests with bodies of 4 MB of small objects, of one token"),
    client("small-bodies", "48 requests with bodies of 250 KB of small objects, of one token"),
    client("connections", "320 idle connections without a token, of the honest clients' address"),
    upstream("ids", "an upstream server asks with ids of 900 KB"),
    upstream("notifications", "an upstream server sends notifications of 1 MB of empty arrays"),
    upstream("line", "an upstream server sends a line without an end"),
    upstream("small", "an upstream server sends small notifications without a pause"),
    upstream("results", "an upstream server answers each call with 1 MB of empty arrays"),
];

impl Attack {
    /// Whether the daemon must speak TLS.
    pub(crate) fn needs_tls(self) -> bool {
        matches!(self.name, "all" | "handshakes")
    }

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
    let size = if name == "small-bodies" { ACCEPTED_BYTES } else { BODY_BYTES };
    let body: &'static str = Box::leak(small_objects(size).into_boxed_str());
    let mut parts = JoinSet::new();
    for (part, count) in AttackPart::of(&name) {
        for _ in 0..*count {
            let (host, token) = (host.clone(), token.clone());
            parts.spawn(async move {
                loop {
                    if part.attack(&host, &token, body).await.is_err() {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            });
        }
    }
    while parts.join_next().await.is_some() {}
}

/// What one of the concurrent parts of an attack does again and again.
#[derive(Clone, Copy, Debug)]
enum AttackPart {
    Body,
    SlowBody,
    SlowReader,
    Reset,
    Handshake,
    /// Connections of this source address that are idle, and opened again after this time when the server has closed them.
    Idle([u8; 4], Duration),
    Call,
}

impl AttackPart {
    /// Returns the parts of an attack, with their numbers.
    fn of(attack: &str) -> &'static [(Self, usize)] {
        match attack {
            "bodies" | "small-bodies" => &[(Self::Body, BODIES)],
            "slow-bodies" => &[(Self::SlowBody, BODIES)],
            "slow-readers" => &[(Self::SlowReader, BODIES)],
            "resets" => &[(Self::Reset, 16)],
            "handshakes" => &[(Self::Handshake, 8)],
            "connections" => &[(Self::Idle(HONEST, REOPENED_AFTER), IDLE)],
            "churn" => &[(Self::Idle(HONEST, PAUSE), IDLE)],
            "all" => &[
                (Self::Body, BODIES),
                (Self::Idle(HOSTILE, REOPENED_AFTER), IDLE),
                (Self::SlowBody, BODIES),
                (Self::SlowReader, BODIES),
                (Self::Reset, 16),
                (Self::Handshake, 8),
            ],
            _ => &[(Self::Call, CALLS)],
        }
    }

    async fn attack(self, host: &str, token: &str, body: &str) -> Result<()> {
        match self {
            Self::Body => post(host, token, body).await,
            Self::SlowBody => slow_body(host, token).await,
            Self::SlowReader => slow_reader(host, token).await,
            Self::Reset => reset(host, token).await,
            Self::Handshake => abort_handshake(host, HOSTILE).await,
            Self::Idle(from, reopened_after) => idle(host, from, reopened_after).await,
            Self::Call => call(host, token).await,
        }
    }
}

/// Creates a `run_code` call of about `size` bytes, with an argument that consists of small objects.
fn small_objects(size: usize) -> String {
    let objects = vec!["{\"a\":0}"; size / 8].join(",");
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"run_code","arguments":{{"language":"python","code":"1","x":[{objects}]}},{META}}}}}"#
    )
}

/// Returns the head of a `run_code` request with a body of `length` bytes.
fn head(host: &str, token: &str, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n\
         mcp-name: run_code\r\ncontent-length: {length}\r\n",
        without_scheme(host)
    )
}

async fn post(host: &str, token: &str, body: &str) -> Result<()> {
    let mut stream = connect(host, HOSTILE).await?;
    let head = head(host, token, body.len());
    stream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(()) } else { Err(Error::other("refused")) }
}

/// Sends the body of a request one byte a second, until the server closes the connection.
async fn slow_body(host: &str, token: &str) -> Result<()> {
    let mut stream = connect(host, HOSTILE).await?;
    stream.write_all(format!("{}\r\n", head(host, token, ACCEPTED_BYTES)).as_bytes()).await?;
    loop {
        stream.write_all(b" ").await?;
        stream.flush().await?;
        tokio::time::sleep(SLOW_PAUSE).await;
    }
}

/// Sends requests whose answers it does not read, until the server closes the connection.
async fn slow_reader(host: &str, token: &str) -> Result<()> {
    let mut stream = connect(host, HOSTILE).await?;
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{META}}}}}"#);
    let head = head(host, token, body.len())
        .replace("tools/call", "tools/list")
        .replace("mcp-name: run_code\r\n", "");
    let request = format!("{head}\r\n{body}");
    loop {
        stream.write_all(request.as_bytes()).await?;
    }
}

/// Sends requests over HTTP/2, each of which it resets at once, until the server closes the connection.
async fn reset(host: &str, token: &str) -> Result<()> {
    let mut stream = connect_http2(host, HOSTILE).await?;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &settings].concat()).await?;
    let headers = header_block(&[
        (":method", "POST"),
        (":scheme", if host.starts_with(TLS) { "https" } else { "http" }),
        (":path", "/mcp"),
        (":authority", without_scheme(host)),
        ("authorization", &format!("Bearer {token}")),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]);
    let mut answers = [0; 4096];
    for stream_id in (1..2 * RESETS_MAX).step_by(2) {
        let [a, b, c, d] = stream_id.to_be_bytes();
        let frame = |kind: u8, flags: u8, payload: &[u8]| {
            let [_, x, y, z] = (payload.len() as u32).to_be_bytes();
            [[x, y, z, kind, flags, a, b, c, d].as_slice(), payload].concat()
        };
        // END_HEADERS, then RST_STREAM with CANCEL.
        let frames = [frame(1, 4, &headers), frame(3, 0, &[0, 0, 0, 8])].concat();
        stream.write_all(&frames).await?;
        // Reads what there is, so that the server is never blocked.
        if let Ok(Ok(0)) = tokio::time::timeout(Duration::from_micros(100), stream.read(&mut answers)).await {
            return Err(Error::other("closed"));
        }
    }
    Ok(())
}

/// Encodes headers for HTTP/2, each as a literal that is not indexed. Names and values have less than 127 bytes.
fn header_block(headers: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    headers.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// Opens a connection to `host` and sends nothing until the server closes the connection; then waits for
/// `reopened_after`, so that the caller does not reopen the connection earlier.
async fn idle(host: &str, from: [u8; 4], reopened_after: Duration) -> Result<()> {
    // Without TLS too: no handshake follows.
    let mut stream = connect(without_scheme(host), from).await?;
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
