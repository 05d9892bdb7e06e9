//! Lines of JSON to and from a child process, with a limit that ends in an error and never in a hang.
//!
//! Results are passed on raw: the typed union of results would drop unknown fields and can be led astray by an
//! upstream's choice of keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, coop, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout};

use super::broken::Broken;
use super::ids::ids_at_ends;
use super::inbound::{self, Inbound, TOO_LARGE, TYPED_BYTES_MAX, failed};
use super::line::{Line, Whole};
use super::traffic::Traffic;

/// Messages that may wait until the server reads them. rmcp answers each request of a server in a task of its own, so a
/// server that asks and never reads would gather them without end.
const UNWRITTEN_MAX: usize = 512;
/// Bytes of one line or event beyond its limit that are passed over, so that an answer that is too large fails its own call alone.
pub(super) const SKIPPED_BYTES_MAX: usize = 256 * 1024 * 1024;

const UNREAD: &str = "it does not read what it is sent";
const UNREAD_ANSWERS: &str = "it asks for more than it takes answers to";
const LONG_LINE: &str = "it sent a line of more than 1 MiB that nobody asked for";
const ENDLESS_LINE: &str = "it sent a line of more than 256 MiB beyond the limit of one message";
const UNKNOWN_LINE: &str = "it sent a line over the limit of one message that answers nothing";

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
    // These two survive the cancellation of `receive`, which rmcp polls inside a `select!`.
    line: Line,
    /// The line before, if it is so large that it is read on another thread.
    reading: Option<JoinHandle<(usize, Inbound)>>,
    /// Until when nothing is read: the pipe holds the server back.
    pause: Option<Instant>,
    write_timeout: Duration,
    write: Arc<Mutex<Option<ChildStdin>>>,
    unwritten: Arc<AtomicUsize>,
    raw: RawResults,
    traffic: Traffic,
    broken: Broken,
}

impl LineTransport {
    /// Takes the streams over. `broken` hears why the connection is of no more use.
    pub(super) fn new(
        stdout: ChildStdout,
        stdin: ChildStdin,
        lines: Lines,
        raw: RawResults,
        broken: Broken,
    ) -> Self {
        Self {
            read: BufReader::with_capacity(64 * 1024, stdout),
            line: Line::new(lines.bytes_max),
            reading: None,
            pause: None,
            write_timeout: lines.write_timeout,
            write: Arc::new(Mutex::new(Some(stdin))),
            unwritten: Arc::default(),
            raw,
            traffic: Traffic::new(broken.clone()),
            broken,
        }
    }

    /// The next line as it came, before the conversation begins. One over the limit is left out.
    pub(super) async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if !self.piece().await? {
                continue;
            }
            match self.line.take() {
                Whole::Within(line) => return self.traffic.unsolicited(line.len()).then_some(line),
                Whole::TooLong(..) if self.traffic.unsolicited(TYPED_BYTES_MAX) => {}
                Whole::TooLong(..) => return None,
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
        // A buffer holds many short lines, and reading them from it would never let others have their turn.
        coop::consume_budget().await;
        let available = self.read.fill_buf().await.ok()?;
        if available.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', available).map(|index| index + 1);
        let count = end.unwrap_or(available.len());
        self.line.add(&available[..count]);
        self.read.consume(count);
        if self.line.skipped() > SKIPPED_BYTES_MAX {
            return self.violated(ENDLESS_LINE);
        }
        if self.line.kept().max(self.line.skipped()) > TYPED_BYTES_MAX && !self.traffic.owes() {
            return self.violated(LONG_LINE);
        }
        Some(end.is_some())
    }

    fn violated<T>(&self, words: &str) -> Option<T> {
        self.traffic.violated(words);
        None
    }

    /// The whole line as a message: `None` to close, `Some(None)` if there is none yet, or none for rmcp.
    fn message(&mut self) -> Option<Option<RxJsonRpcMessage<RoleClient>>> {
        let raw = self.raw.load(Ordering::Acquire);
        match self.line.take() {
            Whole::TooLong(head, tail) => {
                let Some(id) = ids_at_ends(&head, &tail).find(|id| self.traffic.answered(id)) else {
                    self.traffic.unattributable(UNKNOWN_LINE);
                    return None;
                };
                Some(Some(failed(TOO_LARGE, id)))
            }
            Whole::Within(line) if inbound::is_large(line.len()) => {
                self.reading = Some(spawn_blocking(move || read(&line, raw)));
                Some(None)
            }
            Whole::Within(line) => self.admitted(read(&line, raw)),
        }
    }

    /// A message, as far as the server may send it.
    fn admitted(&mut self, read: (usize, Inbound)) -> Option<Option<RxJsonRpcMessage<RoleClient>>> {
        let (message, pause) = self.traffic.admitted(read)?;
        self.pause = pause;
        Some(message)
    }
}

fn read(line: &[u8], raw: bool) -> (usize, Inbound) {
    inbound::read(line, |_, result| raw.then(|| inbound::raw(result)))
}

impl Transport<RoleClient> for LineTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &item {
            self.traffic.requested(request);
        }
        let write = self.write.clone();
        let unwritten = Unwritten::new(&self.unwritten);
        let (broken, write_timeout) = (self.broken.clone(), self.write_timeout);
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
                broken.tell(UNREAD);
                Err(std::io::ErrorKind::TimedOut.into())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(until) = self.pause {
                sleep_until(until).await;
                self.pause = None;
            }
            if self.unwritten.load(Ordering::Relaxed) > UNWRITTEN_MAX {
                return self.violated(UNREAD_ANSWERS);
            }
            let message = if let Some(reading) = &mut self.reading {
                let read = reading.await;
                self.reading = None;
                self.admitted(read.ok()?)?
            } else if self.piece().await? {
                self.message()?
            } else {
                None
            };
            if message.is_some() {
                return message;
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

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use rmcp::model::{ClientRequest, PingRequest, RequestId};

    use super::*;

    #[tokio::test]
    async fn a_server_that_reads_nothing_stalls_the_connection_once_and_for_all() {
        let mut sleep = tokio::process::Command::new("sleep");
        sleep.arg("7777").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = sleep.spawn().expect("sleep");
        let (stdout, stdin) = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
        let lines = Lines { bytes_max: 1024, write_timeout: Duration::from_millis(300) };
        let mut transport =
            LineTransport::new(stdout, stdin, lines, RawResults::default(), Broken::default());
        let ping = |id: &str| {
            let request = ClientRequest::PingRequest(PingRequest::default());
            JsonRpcMessage::request(request, RequestId::String(id.into()))
        };
        assert!(transport.send(ping("small")).await.is_ok());
        let (large, next) = (transport.send(ping(&"x".repeat(1 << 20))), transport.send(ping("next")));
        let (large, next) = tokio::join!(large, next);
        assert_eq!(large.expect_err("a full pipe").kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(next.expect_err("a closed pipe").kind(), std::io::ErrorKind::NotConnected);
        assert!(transport.broken.reason().is_some_and(|reason| reason.words == UNREAD));
    }

    #[tokio::test]
    async fn an_answer_over_the_limit_is_told_to_its_call_and_one_that_names_none_is_no_excess() {
        let data = "x".repeat(2_000);
        for (line, expected) in [
            (format!(r#"{{"result":{{"id":12345,"a":"{data}"}},"jsonrpc":"2.0","id":7}}"#), true),
            (format!(r#"{{"result":{{"id":7,"a":"{data}"}},"jsonrpc":"2.0","id":"seven"}}"#), false),
        ] {
            let mut echo = tokio::process::Command::new("echo");
            echo.arg(&line).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
            let mut child = echo.spawn().expect("echo");
            let (stdout, stdin) = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
            let lines = Lines { bytes_max: 1024, write_timeout: Duration::from_secs(5) };
            let mut transport =
                LineTransport::new(stdout, stdin, lines, RawResults::default(), Broken::default());
            let request = ClientRequest::PingRequest(PingRequest::default());
            // It counts as asked from here on, whether it is written or not.
            drop(transport.send(JsonRpcMessage::request(request, RequestId::Number(7))));
            let received = transport.receive().await;
            let is_told = matches!(&received, Some(JsonRpcMessage::Error(error)) if error.id == Some(RequestId::Number(7)));
            assert_eq!(is_told, expected, "{received:?}");
            let reason = transport.broken.reason().map(|reason| (reason.words, reason.is_excess));
            assert_eq!(reason, (!expected).then(|| (UNKNOWN_LINE.to_owned(), false)));
        }
    }
}
