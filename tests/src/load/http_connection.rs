//! A small HTTP/1.1 client for load generation: one connection, one request at a time, little CPU time.

use std::io::{Error, ErrorKind, Result};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::stream::{Stream, connect, without_scheme};

/// The maximum size of an HTTP answer in bytes. A longer answer is an error.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;
const LATEST: &str = "2026-07-28";
/// The newest MCP protocol version that has an `initialize` request and MCP sessions.
const WITH_SESSIONS: &str = "2025-11-25";

/// The source address of the honest clients, 127.0.0.1. It differs from that of the hostile client, because
/// the server has limits per source address.
pub(crate) const HONEST: [u8; 4] = [127, 0, 0, 1];
/// The source address of the hostile client.
pub(crate) const HOSTILE: [u8; 4] = [127, 0, 0, 2];

/// The form of the MCP protocol that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// The client sends self-contained requests, without `initialize`.
    Stateless,
    /// The client sends `initialize`, and then requests in an MCP session.
    Sessions,
}

/// A received HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    /// The JSON-RPC response in the body, or the text of the body if it has no JSON-RPC message.
    pub(crate) message: Value,
}

/// The HTTP connection of one AI client, with its MCP session if it has one.
pub(crate) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
    host: String,
    token: String,
    era: Era,
    session: Option<String>,
    last: u64,
}

impl Connection {
    /// Opens a connection to `host` (see [`connect`]), and initializes an MCP session if `era` is [`Era::Sessions`].
    pub(crate) async fn open(host: &str, from: [u8; 4], token: &str, era: Era) -> Result<Self> {
        let stream = connect(host, from).await?;
        let (host, token) = (without_scheme(host).to_owned(), token.to_owned());
        let mut opened = Self { stream: BufReader::new(stream), host, token, era, session: None, last: 0 };
        if era == Era::Sessions {
            let parameters = json!({
                "protocolVersion": WITH_SESSIONS, "capabilities": {},
                "clientInfo": {"name": "load", "version": "1"},
            });
            let answer = opened.request("initialize", None, parameters).await?;
            if answer.status != 200 {
                return Err(Error::other(format!("initialize: {} {}", answer.status, answer.message)));
            }
            opened.session = answer.session;
            opened.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), &[]).await?;
            opened.receive().await?;
        }
        Ok(opened)
    }

    /// Calls a tool of Lockhouse and waits for the answer.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Result<Answer> {
        self.request("tools/call", Some(tool), json!({"name": tool, "arguments": arguments})).await
    }

    /// Sends a JSON-RPC request and waits for the answer. `name` is the name of the called tool, for the HTTP header
    /// `mcp-name`.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        name: Option<&str>,
        parameters: Value,
    ) -> Result<Answer> {
        self.ask(method, name, parameters).await?;
        let answer = self.receive().await?;
        let own = answer.message["id"] == self.last;
        if answer.status == 200 && !own {
            return Err(Error::new(ErrorKind::InvalidData, format!("another's answer: {}", answer.message)));
        }
        Ok(answer)
    }

    /// Sends a JSON-RPC request without reading the answer. `name` is the name of the called tool, for the HTTP header
    /// `mcp-name`.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        name: Option<&str>,
        mut parameters: Value,
    ) -> Result<()> {
        self.last += 1;
        let mut headers = Vec::new();
        if self.era == Era::Stateless {
            parameters["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": LATEST,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
            });
            headers.push(("mcp-method", method));
            headers.extend(name.map(|name| ("mcp-name", name)));
        }
        let message = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters});
        self.send(&message, &headers).await
    }

    async fn send(&mut self, message: &Value, headers: &[(&str, &str)]) -> Result<()> {
        let body = message.to_string();
        let version = if self.era == Era::Stateless { LATEST } else { WITH_SESSIONS };
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: {version}\r\ncontent-length: {}\r\n",
            self.host,
            self.token,
            body.len()
        );
        let session = self.session.iter().map(|session| ("mcp-session-id", session.as_str()));
        for (name, value) in headers.iter().copied().chain(session) {
            head += &format!("{name}: {value}\r\n");
        }
        self.stream.get_mut().write_all(format!("{head}\r\n{body}").as_bytes()).await
    }

    async fn receive(&mut self) -> Result<Answer> {
        let mut line = String::new();
        self.line(&mut line).await?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status =
            status.ok_or_else(|| Error::new(ErrorKind::InvalidData, format!("no answer: {line:?}")))?;
        let (mut length, mut chunked, mut session, mut events) = (0, false, None, false);
        loop {
            self.line(&mut line).await?;
            let Some((name, value)) = line.split_once(':') else { break };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(|_| ErrorKind::InvalidData)?,
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "mcp-session-id" => session = Some(value.to_owned()),
                "content-type" => events = value.starts_with("text/event-stream"),
                _ => {}
            }
        }
        let body = if chunked { self.chunks().await? } else { self.exactly(length).await? };
        let text = String::from_utf8_lossy(&body);
        let message = if events { last_message(&text) } else { serde_json::from_str(&text).ok() };
        Ok(Answer { status, session, message: message.unwrap_or_else(|| text.into_owned().into()) })
    }

    async fn line(&mut self, line: &mut String) -> Result<()> {
        line.clear();
        if self.stream.read_line(line).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(())
    }

    async fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        if length > ANSWER_BYTES_MAX {
            return Err(Error::new(ErrorKind::InvalidData, "too long an answer"));
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }

    async fn chunks(&mut self) -> Result<Vec<u8>> {
        let (mut body, mut line) = (Vec::new(), String::new());
        loop {
            self.line(&mut line).await?;
            let size = usize::from_str_radix(&line, 16).map_err(|_| ErrorKind::InvalidData)?;
            let chunk = self.exactly(size).await?;
            self.line(&mut line).await?;
            if size == 0 {
                return Ok(body);
            }
            body.extend(chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(Error::new(ErrorKind::InvalidData, "too long an answer"));
            }
        }
    }
}

fn last_message(events: &str) -> Option<Value> {
    let data = events.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    messages.rfind(|message| message.get("id").is_some())
}
