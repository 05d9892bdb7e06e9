//! Reads the messages of an upstream server from the standard output of its process: one JSON message per line, within size
//! limits. Results stay raw text: typed results would drop unknown fields.

use std::sync::Arc;

use lockhouse_base::line_buffer::{CompleteLine, LineBuffer};
use rmcp::model::RequestId;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::{JoinHandle, coop, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use crate::answer_error::ResponseError;
use crate::client::Client;
use crate::client::connection_failure::FailureSignal;
use crate::client::conversation::{MessageReader, ServerInput};
use crate::client::inbound_message::{
    self, InboundMessage, JsonRpcResult, RxMessage, TOO_LARGE, TYPED_BYTES_MAX,
};
use crate::client::line_writer::LineWriter;
use crate::client::response_id_scan::find_ids_at_ends;
use crate::client::traffic_limits::{Admitted, TrafficLimiter};
use crate::pending_requests::PendingRequests;

/// Maximum number of bytes of a line or event over the size limit that are skipped. Up to this number, a result that is
/// too large fails only its own call; above it, the server is disconnected.
/// Bound: upstream servers.
pub(crate) const SKIPPED_BYTES_MAX: usize = 256 * 1024 * 1024;

const LONG_LINE: &str = "it sent an unsolicited line of more than 1 MiB";
const ENDLESS_LINE: &str = "it sent a line of more than 256 MiB beyond the limit of one message";
const UNKNOWN_LINE: &str = "it sent a line over the limit of one message that answers no request";

/// The MCP transport over the standard input and output of an upstream server's process, or over a socket that stands for
/// them.
pub struct LineTransport {
    read: BufReader<ChildStdout>,
    // These two survive the cancellation of `receive`.
    line: LineBuffer,
    /// The task that parses the previous line on another thread, if that line is large; otherwise `None`.
    reading: Option<JoinHandle<(usize, InboundMessage)>>,
    /// Until when no output of the server is read, because of its traffic limits; `None` if reading does not pause.
    /// Meanwhile the full pipe blocks the server.
    pause: Option<Instant>,
    writer: LineWriter,
    pending: PendingRequests,
    traffic: TrafficLimiter,
    /// Examines each line, whether it is a message or not.
    examine: Box<LineObserver>,
}

type LineObserver = dyn Fn(&[u8]) + Send;

impl LineTransport {
    /// Creates the transport over a process's standard streams. `bytes_max` is the maximum size of a line that is read
    /// from the server. Failures of the connection are reported to `failure_signal`.
    pub fn new(
        stdout: ChildStdout,
        stdin: ChildStdin,
        bytes_max: usize,
        failure_signal: FailureSignal,
    ) -> Self {
        let writer = LineWriter::new(stdin);
        let traffic = TrafficLimiter::new(failure_signal);
        Self {
            read: BufReader::with_capacity(64 * 1024, stdout),
            line: LineBuffer::new(bytes_max),
            reading: None,
            pause: None,
            pending: PendingRequests::default(),
            writer,
            traffic,
            examine: Box::new(|_| {}),
        }
    }

    /// Passes each line to `examine` from now on, whether it is a message or not. Large lines are left out.
    pub fn examine_lines(&mut self, examine: impl Fn(&[u8]) + Send + 'static) {
        self.examine = Box::new(examine);
    }

    /// Creates the client whose answers this transport reads.
    pub fn client(&self) -> Client {
        Client::new(Arc::new(self.writer.clone()), self.traffic.clone(), self.pending.clone())
    }

    /// Reads the next chunk of the current line. Returns whether the line is now complete; `None` if the output has
    /// ended, or if the line is so long that the connection fails. The future can be dropped without losing data.
    async fn piece(&mut self) -> Option<bool> {
        // A buffer contains many short lines. Yield, so that other tasks can run between them.
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
        if self.line.kept().max(self.line.skipped()) > TYPED_BYTES_MAX && !self.traffic.has_pending_requests()
        {
            return self.violated(LONG_LINE);
        }
        Some(end.is_some())
    }

    fn violated<T>(&self, message: &str) -> Option<T> {
        self.traffic.fail_for_violation(message);
        None
    }

    /// Parses the complete line. Returns the server's request or notification. Returns `Some(None)` if the line is none, or
    /// if a large line is still being parsed on another thread. Returns `None` if the connection must be closed.
    fn message(&mut self) -> Option<Option<Box<RxMessage>>> {
        match self.line.take() {
            CompleteLine::TooLong(head, tail) => {
                let Some(id) = find_ids_at_ends(&head, &tail).find(|id| self.traffic.take_pending(id)) else {
                    self.traffic.fail_unattributable(UNKNOWN_LINE);
                    return None;
                };
                self.complete(&id, inbound_message::failed(TOO_LARGE));
                Some(None)
            }
            CompleteLine::Within(line) if inbound_message::is_large(line.len()) => {
                self.reading = Some(spawn_blocking(move || inbound_message::parse(line)));
                Some(None)
            }
            CompleteLine::Within(line) => {
                (self.examine)(&line);
                self.admitted(inbound_message::parse(line))
            }
        }
    }

    /// Charges a parsed message to the server's traffic limits, and passes an answer to the request that waits for it. Returns
    /// the server's request or notification, or `Some(None)` if the message is dropped or an answer. Returns `None` if the
    /// connection must be closed.
    fn admitted(&mut self, read: (usize, InboundMessage)) -> Option<Option<Box<RxMessage>>> {
        Some(match self.traffic.admit(read)? {
            Admitted::Answer(id, answer) => {
                self.complete(&id, answer);
                None
            }
            Admitted::Unsolicited(message, pause) => {
                self.pause = pause;
                message
            }
        })
    }

    fn complete(&self, id: &RequestId, answer: JsonRpcResult) {
        self.pending.complete(id, answer.map_err(ResponseError::Refused));
    }
}

impl MessageReader for LineTransport {
    async fn receive(&mut self) -> Option<ServerInput> {
        loop {
            if let Some(until) = self.pause {
                sleep_until(until).await;
                self.pause = None;
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
            if let Some(message) = message {
                return Some(ServerInput::Message(message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use rmcp::model::{ClientRequest, PingRequest};

    use super::*;
    use crate::client::request_line;

    #[tokio::test]
    async fn a_server_that_reads_nothing_for_a_while_has_not_failed() {
        // `cat` reads nothing more once the pipe of its output is full.
        let mut cat = tokio::process::Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = cat.spawn().expect("cat");
        let (stdout, stdin) = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
        let failure_signal = FailureSignal::default();
        let mut transport = LineTransport::new(stdout, stdin, 1 << 20, failure_signal.clone());
        let large = format!("{}\n", "x".repeat(600_000)).into_bytes();
        for _ in 0..4 {
            transport.writer.start_write(large.clone()).expect("a line that waits");
        }
        let small = (0..1_000).filter(|_| transport.writer.start_write(b"x\n".to_vec()).is_ok());
        assert_eq!(small.count(), 512 - 4);
        for _ in 0..4 {
            while transport.piece().await == Some(false) {}
            let line = transport.line.take();
            assert!(matches!(line, CompleteLine::Within(line) if line.len() == large.len()));
        }
        assert_eq!(failure_signal.reason(), None);
    }

    #[tokio::test]
    async fn an_answer_over_the_limit_is_told_to_its_call_and_one_that_names_none_is_no_excess() {
        let data = "x".repeat(2_000);
        for (line, expected) in [
            (format!(r#"{{"result":{{"id":12345,"a":"{data}"}},"jsonrpc":"2.0","id":1}}"#), true),
            (format!(r#"{{"result":{{"id":1,"a":"{data}"}},"jsonrpc":"2.0","id":"one"}}"#), false),
        ] {
            let mut server = tokio::process::Command::new("sh");
            server.args(["-c", "read -r request; echo \"$0\""]).arg(&line);
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
            let mut child = server.spawn().expect("sh");
            let (stdout, stdin) = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
            let failure_signal = FailureSignal::default();
            let mut transport = LineTransport::new(stdout, stdin, 1024, failure_signal.clone());
            let request = ClientRequest::PingRequest(PingRequest::default());
            let line = |id, meta| request_line(request, id, meta);
            let mut pending = transport.client().send(line, None, "").expect("sent");
            assert!(transport.receive().await.is_none());
            transport.pending.close();
            let answer = pending.answer().await;
            let is_told = matches!(&answer, Err(ResponseError::Refused(error)) if error.message == TOO_LARGE);
            assert_eq!(is_told, expected, "{answer:?}");
            let reason = failure_signal.reason().map(|reason| (reason.message, reason.is_violation));
            assert_eq!(reason, (!expected).then(|| (UNKNOWN_LINE.to_owned(), false)));
        }
    }
}
