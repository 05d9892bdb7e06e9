//! The MCP transport over standard input and output: one JSON-RPC message per line.
//!
//! rmcp's own transport parses each message several times, once for each type that it could be. This transport parses a
//! `tools/call`, which nearly all messages are, once, and serves it without rmcp's service loop (`tool_calls.rs`). rmcp
//! parses and serves all others.

use std::io::{Error, Result};
use std::sync::Arc;

use lockhouse_base::line_buffer::{CompleteLine, LineBuffer};
use lockhouse_base::log_throttle::LogThrottle;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, Service, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::task::JoinHandle;

use super::line_parser::{ParsedLine, parse};
use super::line_writer::LineWriter;
use super::tool_calls::ToolCalls;

/// The number of bytes that are read at once. Most messages are shorter.
const READ_BYTES: usize = 16 * 1024;

/// The transport: the connection of one AI client.
pub(super) struct LineTransport<R, W, S> {
    read: BufReader<R>,
    // The next two survive when `receive` is cancelled: rmcp polls it inside a `select!`.
    line: LineBuffer,
    /// The task that writes the error for an invalid line. The next line is read after it has ended, so that a client that
    /// reads no answers does not make more of them.
    refusing: Option<JoinHandle<Result<()>>>,
    line_bytes_max: usize,
    writer: LineWriter<W>,
    tool_calls: Arc<ToolCalls<S>>,
    refusal_log: LogThrottle,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Send + Unpin + 'static, S> LineTransport<R, W, S> {
    /// Creates the transport. A longer line than `line_bytes_max` is answered with an error.
    pub(super) fn new(read: R, write: W, line_bytes_max: usize, tool_calls: Arc<ToolCalls<S>>) -> Self {
        Self {
            read: BufReader::with_capacity(READ_BYTES, read),
            line: LineBuffer::new(line_bytes_max),
            refusing: None,
            line_bytes_max,
            writer: LineWriter::new(write),
            tool_calls,
            refusal_log: LogThrottle::default(),
        }
    }

    /// Reads the next whole line. Returns `None` if the input has ended. Cancel-safe.
    async fn read_line(&mut self) -> Result<Option<CompleteLine>> {
        loop {
            let available = self.read.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', available).map(|position| position + 1);
            let count = end.unwrap_or(available.len());
            self.line.add(&available[..count]);
            self.read.consume(count);
            if end.is_some() {
                return Ok(Some(self.line.take()));
            }
        }
    }

    /// Starts to write the error for an invalid line, and logs it without any text of the client.
    fn refuse(&mut self, id: Option<RequestId>, error: ErrorData) {
        let code = error.code.0;
        self.refusal_log.write(|more| {
            tracing::warn!("the AI client sent an invalid message, which is answered with the JSON-RPC error {code}{more}");
        });
        let (writer, answer) = (self.writer.clone(), TxJsonRpcMessage::<RoleServer>::error(error, id));
        self.refusing = Some(tokio::spawn(async move { writer.write(&answer).await }));
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
            if let Some(refusing) = &mut self.refusing {
                let written = refusing.await;
                self.refusing = None;
                written.ok()?.ok()?;
            }
            let line = match self.read_line().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::error!("standard input cannot be read: {error}");
                    return None;
                }
            };
            match parse(&line, self.line_bytes_max) {
                ParsedLine::ToolCall(call) => {
                    if let Err(call) = self.tool_calls.start(call, &self.writer) {
                        return Some(call.into_message());
                    }
                }
                ParsedLine::Message(message) if self.tool_calls.cancel(&message) => {}
                ParsedLine::Message(message) => return Some(*message),
                ParsedLine::Ignored => {}
                ParsedLine::Refused(id, error) => self.refuse(id, error),
            }
        }
    }

    async fn close(&mut self) -> Result<()> {
        self.writer.close().await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmcp::ServerHandler;
    use rmcp::model::JsonRpcMessage;
    use serde_json::{Value, json};
    use tokio::io::AsyncWriteExt;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A service that has nothing but rmcp's defaults.
    struct EmptyService;

    impl ServerHandler for EmptyService {}

    #[tokio::test]
    async fn lines_without_a_message_are_answered_and_do_not_end_the_connection() {
        let ping = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}");
        let input = [
            "",
            "not json",
            r#"{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\ud83d"}}"#,
            &ping(2),
            &format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\",\"params\":\"{}\"}}",
                "x".repeat(300)
            ),
            &format!("{}\r", ping(4)),
            &format!("\u{feff}{}", ping(5)),
        ]
        .join("\n");
        for pieces in [1, 7, 4096] {
            let (reader, mut far_end) = tokio::io::duplex(pieces);
            let text = format!("{input}\n{}", ping(6));
            let feeding = tokio::spawn(async move { far_end.write_all(text.as_bytes()).await });
            let mut written = String::new();
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
            assert_eq!(ids, [json!(2), json!(4), json!(5)], "{pieces}");
            transport.close().await.expect("closed");
            tokio::io::AsyncReadExt::read_to_string(&mut answers, &mut written).await.expect("read");
            let answers = written.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            let refused: Vec<Value> =
                answers.map(|answer| json!([answer.get("id"), answer["error"]["code"]])).collect();
            assert_eq!(
                refused,
                [json!([null, -32_700]), json!([1, -32_700]), json!([3, -32_600])],
                "{pieces}"
            );
        }
    }
}
