//! Lines of JSON to and from a child process, with a limit that ends in an error and never in a hang.
//!
//! Results are passed on raw: the typed union of results would drop unknown fields and can be led astray by an
//! upstream's choice of keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{CustomResult, ErrorData, RequestId, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// What is kept of a line over the limit, at each end: enough to find whose answer it is.
const KEEP_BYTES: usize = 256;

/// Marks an error as ours, so that the caller can tell it from the upstream's own.
pub(super) const TOO_LARGE: &str = "lockhouse: result too large";

/// The connection ended between a request and its answer.
pub(super) const CUT_OFF: &str = "lockhouse: the answer was cut off";

pub(super) const NOT_JSON: &str = "the server's answer is not valid JSON, or is nested too deeply";

/// Bytes of a message that is parsed in full: a request or notification of the server, or a result of the handshake.
pub(super) const TYPED_BYTES_MAX: usize = 1024 * 1024;

/// Messages that may wait until the server reads them. rmcp answers each request of a server in a task of its own, so a
/// server that asks and never reads would gather them without end.
const UNWRITTEN_MAX: usize = 512;

/// Whether results pass on raw: off during the handshake, whose results rmcp needs typed.
pub(super) type RawResults = Arc<AtomicBool>;

/// What one line may take.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    /// Of one line that is read.
    pub(super) bytes_max: usize,
    /// Until one line is written. After it the connection is dead: half a line cannot be taken back.
    pub(super) write_timeout: Duration,
}

/// A child's standard streams.
pub(super) struct LineTransport {
    read: BufReader<ChildStdout>,
    // These survive the cancellation of `receive`, which rmcp polls inside a `select!`.
    line: Vec<u8>,
    tail: Vec<u8>,
    over_limit: bool,
    lines: Lines,
    stalled: CancellationToken,
    write: Arc<Mutex<Option<ChildStdin>>>,
    unwritten: Arc<AtomicUsize>,
    raw: RawResults,
}

impl LineTransport {
    /// Takes the streams over.
    pub(super) fn new(stdout: ChildStdout, stdin: ChildStdin, lines: Lines, raw: RawResults) -> Self {
        Self {
            read: BufReader::with_capacity(64 * 1024, stdout),
            line: Vec::new(),
            tail: Vec::new(),
            over_limit: false,
            lines,
            stalled: CancellationToken::new(),
            write: Arc::new(Mutex::new(Some(stdin))),
            unwritten: Arc::default(),
            raw,
        }
    }

    /// Cancelled when a line could not be written in time; nothing is written from then on.
    pub(super) fn stalled(&self) -> CancellationToken {
        self.stalled.clone()
    }

    /// The next line as it came, before the conversation begins. One over the limit is left out.
    pub(super) async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if self.piece().await? {
                let line = std::mem::take(&mut self.line);
                self.tail.clear();
                if !std::mem::take(&mut self.over_limit) {
                    return Some(line);
                }
            }
        }
    }

    /// Writes a line of our own, before the conversation begins.
    pub(super) async fn write_line(&mut self, line: &str) -> std::io::Result<()> {
        let mut write = self.write.lock().await;
        let stdin = write.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
        stdin.write_all(line.as_bytes()).await?;
        stdin.write_all(b"\n").await?;
        stdin.flush().await
    }

    /// Reads a piece of the current line; whether it is the last one. Nothing is lost when this is cancelled.
    async fn piece(&mut self) -> Option<bool> {
        let available = self.read.fill_buf().await.ok()?;
        if available.is_empty() {
            return None;
        }
        let end = available.iter().position(|byte| *byte == b'\n').map(|index| index + 1);
        let piece = available[..end.unwrap_or(available.len())].to_vec();
        self.read.consume(piece.len());
        self.keep(&piece);
        Some(end.is_some())
    }

    /// Adds a piece of the current line, keeping only its ends once it is too long.
    fn keep(&mut self, piece: &[u8]) {
        if !self.over_limit && self.line.len() + piece.len() > self.lines.bytes_max {
            self.over_limit = true;
            let room = KEEP_BYTES.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend_from_slice(&piece[..room]);
            self.line.truncate(KEEP_BYTES);
        }
        if self.over_limit {
            self.tail.extend_from_slice(&piece[piece.len().saturating_sub(KEEP_BYTES)..]);
            self.tail.drain(..self.tail.len().saturating_sub(KEEP_BYTES));
        } else {
            self.line.extend_from_slice(piece);
        }
    }

    /// The whole line as a message: `None` to close, `Some(None)` to skip it.
    fn message(&mut self) -> Option<Option<RxJsonRpcMessage<RoleClient>>> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.over_limit) {
            let tail = std::mem::take(&mut self.tail);
            // Without an id nobody can be told, and someone would wait for ever: close instead.
            let id = id_in(&line).or_else(|| id_in(&tail))?;
            return Some(Some(failed(TOO_LARGE, id)));
        }
        let envelope = match serde_json::from_slice::<Envelope<'_>>(&line) {
            Ok(envelope) => envelope,
            // Where it names a request, that one must not hang.
            Err(_) => return Some(id_in(&line).map(|id| failed(NOT_JSON, id))),
        };
        if self.raw.load(Ordering::Acquire)
            && envelope.method.is_none()
            && let Some(result) = envelope.result
            && let Some(id) = envelope.id.and_then(|id| serde_json::from_str::<RequestId>(id.get()).ok())
        {
            // As text: parsed in full, a hostile result would take a hundred times its size.
            let result = ServerResult::CustomResult(CustomResult(Value::String(result.get().to_owned())));
            return Some(Some(RxJsonRpcMessage::<RoleClient>::response(result, id)));
        }
        if line.len() > TYPED_BYTES_MAX {
            return Some(id_in(&line).map(|id| failed(TOO_LARGE, id)));
        }
        Some(serde_json::from_slice(&line).ok())
    }
}

/// The parts of a message that say what it is.
#[derive(Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) method: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
}

pub(super) fn failed(message: &'static str, id: RequestId) -> RxJsonRpcMessage<RoleClient> {
    RxJsonRpcMessage::<RoleClient>::error(ErrorData::internal_error(message, None), Some(id))
}

impl Transport<RoleClient> for LineTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let write = self.write.clone();
        let unwritten = Unwritten::new(&self.unwritten);
        let (stalled, write_timeout) = (self.stalled.clone(), self.lines.write_timeout);
        async move {
            let _unwritten = unwritten;
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let stdin = write.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
            let written = async {
                stdin.write_all(&line).await?;
                stdin.flush().await
            };
            timeout(write_timeout, written).await.unwrap_or_else(|_| {
                write.take();
                stalled.cancel();
                Err(std::io::ErrorKind::TimedOut.into())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if self.unwritten.load(Ordering::Relaxed) > UNWRITTEN_MAX {
                tracing::warn!("a server asks for more than it reads, and is disconnected");
                return None;
            }
            if self.piece().await?
                && let Some(message) = self.message()?
            {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.lock().await.take();
        Ok(())
    }
}

/// Counts a message from its making until it is written or given up.
struct Unwritten(Arc<AtomicUsize>);

impl Unwritten {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The last `"id": N` in a piece of JSON.
pub(super) fn id_in(piece: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(piece);
    let at = text.rfind("\"id\":")?;
    let rest = text[at + "\"id\":".len()..].trim_start();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(RequestId::Number)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use rmcp::model::{ClientRequest, JsonRpcMessage, PingRequest};

    use super::*;

    #[tokio::test]
    async fn a_server_that_reads_nothing_stalls_the_connection_once_and_for_all() {
        let mut sleep = tokio::process::Command::new("sleep");
        sleep.arg("7777").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = sleep.spawn().expect("sleep");
        let (stdout, stdin) = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
        let lines = Lines { bytes_max: 1024, write_timeout: Duration::from_millis(300) };
        let mut transport = LineTransport::new(stdout, stdin, lines, RawResults::default());
        let ping = |id: &str| {
            let request = ClientRequest::PingRequest(PingRequest::default());
            JsonRpcMessage::request(request, RequestId::String(id.into()))
        };
        assert!(transport.send(ping("small")).await.is_ok());
        let (large, next) = (transport.send(ping(&"x".repeat(1 << 20))), transport.send(ping("next")));
        let (large, next) = tokio::join!(large, next);
        assert_eq!(large.expect_err("a full pipe").kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(next.expect_err("a closed pipe").kind(), std::io::ErrorKind::NotConnected);
        assert!(transport.stalled().is_cancelled());
    }
}
