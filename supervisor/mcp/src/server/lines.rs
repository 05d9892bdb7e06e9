//! Serves one AI client over lines: one message per line.

use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lockhouse_base::json::MessageEnds;
use lockhouse_base::line_buffer::{CompleteLine, LineBuffer};
use lockhouse_base::log_throttle::LogThrottle;
use rmcp::model::ErrorData;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::client_message::{ClientMessage, InvalidMessage};
use super::connection::{ClientConnection, IdInUse};
use super::dispatch::{begin_request, receive};
use super::lifecycle::RequestHandler;
use super::output::{Closed, Output, error_text};

/// The number of bytes that are read at once. Most messages are shorter.
const READ_BYTES: usize = 16 * 1024;

/// Serves the AI client that writes lines to `input` and reads lines from `output`, until the input ends or `closing` is
/// cancelled. At the end of the input, cancels `closing`, so that executions stop. A line of more than `bytes_max` bytes is
/// answered with an error.
///
/// # Errors
/// The input cannot be read.
pub async fn serve_lines(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    bytes_max: usize,
    handler: impl RequestHandler,
    closing: CancellationToken,
) -> Result<()> {
    let output = Arc::new(LineOutput { output: Mutex::new(output), closing: closing.clone() });
    let connection = ClientConnection::new(output.clone(), closing.clone());
    let mut lines = Lines::new(input, bytes_max);
    let _guard = closing.clone().drop_guard();
    let refusal_log = LogThrottle::default();
    let serving = async {
        while let Some(line) = lines.next().await? {
            let refused = match parse(&line, bytes_max) {
                Ok(ClientMessage::Request(request)) => {
                    match begin_request(&connection, *request, handler.clone(), output.clone(), None) {
                        Ok(_) => continue,
                        Err(IdInUse(id)) => InvalidMessage {
                            id: Some(id),
                            error: Box::new(ErrorData::invalid_request(ID_IN_USE, None)),
                        },
                    }
                }
                Ok(message) => {
                    receive(&connection, message, &handler, &None);
                    continue;
                }
                Err(refused) => refused,
            };
            let code = refused.error.code.0;
            refusal_log.write(|more| {
                tracing::warn!("the AI client sent an invalid message, which is answered with the JSON-RPC error {code}{more}");
            });
            // The next line is read after this, so that a client that reads no answers does not make more of them.
            if output.send(error_text(refused.id, *refused.error)).await.is_err() {
                break;
            }
        }
        Ok(())
    };
    tokio::select! {
        served = serving => served,
        () = closing.cancelled() => Ok(()),
    }
}

/// The words by which a request is refused whose id another request in flight has.
pub const ID_IN_USE: &str = "a request with this id is under way: wait for its answer, or take another id";

/// Parses a line. An empty line counts as a notification.
fn parse(line: &CompleteLine, bytes_max: usize) -> std::result::Result<ClientMessage, InvalidMessage> {
    match line {
        CompleteLine::Within(line) => {
            let line = line.trim_ascii();
            ClientMessage::parse(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line))
        }
        CompleteLine::TooLong(head, tail) => {
            let message = format!("the message has more than {bytes_max} bytes");
            ClientMessage::refuse(MessageEnds::new(head, tail), ErrorData::invalid_request(message, None))
        }
    }
}

/// Reads lines of a limited length.
pub struct Lines<R> {
    input: BufReader<R>,
    line: LineBuffer,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Of a longer line than `bytes_max` bytes, only the beginning and the end are kept.
    pub fn new(input: R, bytes_max: usize) -> Self {
        Self { input: BufReader::with_capacity(READ_BYTES, input), line: LineBuffer::new(bytes_max) }
    }

    /// Reads the next whole line that is not empty. Returns `None` if the input has ended.
    ///
    /// # Errors
    /// The input cannot be read.
    pub async fn next(&mut self) -> Result<Option<CompleteLine>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', available).map(|position| position + 1);
            let count = end.unwrap_or(available.len());
            self.line.add(&available[..count]);
            self.input.consume(count);
            if end.is_none() {
                continue;
            }
            match self.line.take() {
                CompleteLine::Within(line) if line.trim_ascii().is_empty() => {}
                line => return Ok(Some(line)),
            }
        }
    }
}

/// Writes messages, one per line.
struct LineOutput<W> {
    output: Mutex<W>,
    /// Nothing is written after this is cancelled: some AI clients fail if an answer arrives after they have closed the pipe.
    closing: CancellationToken,
}

impl<W: AsyncWrite + Send + Unpin + 'static> LineOutput<W> {
    async fn write(&self, mut message: String) -> Result<()> {
        message.push('\n');
        let mut output = self.output.lock().await;
        if self.closing.is_cancelled() {
            return Err(Error::from(ErrorKind::NotConnected));
        }
        output.write_all(message.as_bytes()).await?;
        output.flush().await
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Output for LineOutput<W> {
    fn send(&self, message: String) -> BoxFuture<'_, std::result::Result<(), Closed>> {
        self.write(message).map(|written| written.map_err(|_| Closed)).boxed()
    }
}

#[cfg(test)]
mod tests;
