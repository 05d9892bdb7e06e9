//! The MCP transport over standard input and output: one JSON-RPC message per line.
//!
//! rmcp's own transport parses each message several times, once for each type that it could be. This transport parses a
//! `tools/call`, which nearly all messages are, once, and serves it without rmcp's service loop (`tool_calls.rs`). rmcp
//! parses and serves all others.

use std::io::{Error, Result};
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, ErrorData, JsonRpcMessage, JsonRpcVersion2_0, RequestId};
use rmcp::service::{RxJsonRpcMessage, Service, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};

use super::line_writer::LineWriter;
use super::tool_calls::{ToolCall, ToolCalls};

/// The number of bytes that are read at once. Most messages are shorter.
const READ_BYTES: usize = 16 * 1024;

/// The transport: the connection of one AI client.
pub(super) struct LineTransport<R, W, S> {
    read: BufReader<R>,
    // Both survive when `receive` is cancelled: rmcp polls it inside a `select!`.
    line: Vec<u8>,
    /// Whether the rest of the line is skipped, because the line is too long.
    is_skipping: bool,
    line_bytes_max: usize,
    writer: LineWriter<W>,
    tool_calls: Arc<ToolCalls<S>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin, S> LineTransport<R, W, S> {
    /// Creates the transport. A longer line than `line_bytes_max` is skipped, and the connection stays open.
    pub(super) fn new(read: R, write: W, line_bytes_max: usize, tool_calls: Arc<ToolCalls<S>>) -> Self {
        let read = BufReader::with_capacity(READ_BYTES, read);
        let writer = LineWriter::new(write);
        Self { read, line: Vec::new(), is_skipping: false, line_bytes_max, writer, tool_calls }
    }

    /// Reads until `line` has the next whole line. Returns `false` if the input has ended. Cancel-safe.
    async fn read_line(&mut self) -> Result<bool> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', available).map(|position| position + 1);
            let count = end.unwrap_or(available.len());
            if !self.is_skipping && self.line.len() + count > self.line_bytes_max {
                tracing::error!("a message of more than {} bytes is ignored", self.line_bytes_max);
                (self.line, self.is_skipping) = (Vec::new(), true);
            }
            if !self.is_skipping {
                self.line.extend_from_slice(&available[..count]);
            }
            self.read.consume(count);
            if end.is_some() && !std::mem::take(&mut self.is_skipping) {
                return Ok(true);
            }
        }
    }
}

impl<R, W, S> Transport<RoleServer> for LineTransport<R, W, S>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
    S: Service<RoleServer>,
{
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move { writer.write(&message).await }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.read_line().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::error!("standard input cannot be read: {error}");
                    return None;
                }
            }
            let parsed = parse(&self.line);
            self.line.clear();
            match parsed {
                Parsed::ToolCall(call) => {
                    if let Err(call) = self.tool_calls.start(call, &self.writer) {
                        return Some(call.into_message());
                    }
                }
                Parsed::Message(message) if self.tool_calls.cancel(&message) => {}
                Parsed::Message(message) => return Some(*message),
                Parsed::Ignored => {}
                Parsed::Invalid => {
                    let error = ErrorData::invalid_request("Invalid request", None);
                    self.send(JsonRpcMessage::error(error, None)).await.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<()> {
        self.writer.close().await;
        Ok(())
    }
}

/// The result of parsing a line.
enum Parsed {
    ToolCall(Box<ToolCall>),
    Message(Box<RxJsonRpcMessage<RoleServer>>),
    /// Nothing that has an answer: an empty line, invalid JSON (an answer could make the peer send more of it), or a
    /// notification that this protocol does not have.
    Ignored,
    /// JSON that is no valid message.
    Invalid,
}

fn parse(line: &[u8]) -> Parsed {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    if line.is_empty() {
        return Parsed::Ignored;
    }
    if let Some(call) = parse_tool_call(line) {
        return Parsed::ToolCall(Box::new(call));
    }
    match serde_json::from_slice(line) {
        Ok(message) => Parsed::Message(Box::new(message)),
        Err(error) if matches!(error.classify(), Category::Syntax | Category::Eof) => Parsed::Ignored,
        Err(_) if is_foreign_notification(line) => Parsed::Ignored,
        Err(_) => Parsed::Invalid,
    }
}

/// The members of a `tools/call` request.
#[derive(Deserialize)]
struct ToolCallMembers {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: ToolCallMethod,
    params: CallToolRequestParams,
    /// A message with these members is not a request.
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
enum ToolCallMethod {
    #[serde(rename = "tools/call")]
    CallTool,
}

/// Returns the call of a line if it is a valid `tools/call` request.
fn parse_tool_call(line: &[u8]) -> Option<ToolCall> {
    memchr::memmem::find(line, b"\"tools/call\"")?;
    let members: ToolCallMembers = serde_json::from_slice(line).ok()?;
    let ToolCallMembers { id, mut params, result: None, error: None, .. } = members else { return None };
    let meta = params.meta.take();
    Some(ToolCall { id, params, meta })
}

/// Returns whether a message that rmcp could not parse is a notification of another protocol, or of another version of
/// MCP.
fn is_foreign_notification(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Notification {
        method: String,
        id: Option<IgnoredAny>,
    }
    let notification = serde_json::from_slice::<Notification>(line).ok();
    notification.is_some_and(|message| message.id.is_none() && !is_known(&message.method))
}

/// Returns whether a client may send this notification.
fn is_known(method: &str) -> bool {
    matches!(
        method,
        "notifications/cancelled"
            | "notifications/initialized"
            | "notifications/progress"
            | "notifications/roots/list_changed"
    )
}

#[cfg(test)]
mod tests {
    use rmcp::ServerHandler;
    use rmcp::model::{ClientRequest, JsonRpcRequest, RequestMetaObject};
    use serde_json::json;
    use tokio::io::AsyncWriteExt;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A service that has nothing but rmcp's defaults.
    struct EmptyService;

    impl ServerHandler for EmptyService {}

    fn rmcp_reads(line: &str) -> Option<RxJsonRpcMessage<RoleServer>> {
        serde_json::from_str(line).ok()
    }

    #[test]
    fn a_tool_call_is_read_as_rmcp_reads_it() {
        let params = json!({
            "name": "run_code",
            "arguments": {"code": "1+1", "n": 1.5},
            "_meta": {"progressToken": 7, "x": [1]},
            "requestState": "s",
        });
        for params in [params, json!({"name": "a"}), json!({"name": "a", "_meta": {}})] {
            for id in [json!(1), json!("one")] {
                let line =
                    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string();
                let ours = parse_tool_call(line.as_bytes()).expect(&line).into_message();
                let theirs = rmcp_reads(&line).expect(&line);
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
                let meta = |message: &RxJsonRpcMessage<RoleServer>| match message {
                    JsonRpcMessage::Request(JsonRpcRequest {
                        request: ClientRequest::CallToolRequest(request),
                        ..
                    }) => request.extensions.get::<RequestMetaObject>().cloned(),
                    _ => panic!("{line}"),
                };
                assert_eq!(meta(&ours), meta(&theirs), "{line}");
                assert_eq!(meta(&ours).is_some(), params.get("_meta").is_some(), "{line}");
            }
        }
    }

    #[test]
    fn other_messages_are_left_to_rmcp() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"\"tools/call\""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        ] {
            assert!(parse_tool_call(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[tokio::test]
    async fn lines_without_a_message_are_skipped_or_answered() {
        let ping = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
        let long = "x".repeat(300);
        let input = [
            "",
            "\r",
            "not json",
            r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/other"}"#,
            &long,
            &ping(1),
            r#"{"jsonrpc":"2.0","id":2,"result":{},"method":"ping"}"#,
            &format!("{}\r", ping(3)),
            &format!("\u{feff}{}", ping(4)),
        ]
        .join("\n");
        for pieces in [1, 7, 4096] {
            let (reader, mut far_end) = tokio::io::duplex(pieces);
            let text = format!("{input}\n{}", ping(5));
            let feeding = tokio::spawn(async move { far_end.write_all(text.as_bytes()).await });
            let mut written = Vec::new();
            let (out, mut answers) = tokio::io::duplex(4096);
            let tool_calls = Arc::new(ToolCalls::new(EmptyService, CancellationToken::new()));
            let mut transport = LineTransport::new(reader, out, 200, tool_calls);
            let mut ids = Vec::new();
            while let Some(message) = transport.receive().await {
                if let JsonRpcMessage::Request(request) = message {
                    ids.push(request.id.into_json_value());
                }
            }
            feeding.await.expect("fed").expect("written");
            // The last line has no end.
            assert_eq!(ids, [json!(1), json!(3), json!(4)], "{pieces}");
            transport.close().await.expect("closed");
            tokio::io::AsyncReadExt::read_to_end(&mut answers, &mut written).await.expect("read");
            let answer: serde_json::Value = serde_json::from_slice(&written).expect("one answer");
            assert_eq!(answer["error"]["code"], -32_600, "{answer}");
        }
    }
}
