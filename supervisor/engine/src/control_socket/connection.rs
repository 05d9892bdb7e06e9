//! Serves a connection of an operator's command, such as `lockhouse approvals`, to the control socket. Messages in both
//! directions are lines of JSON.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use crate::supervisor::Supervisor;
use interprocess::local_socket::tokio::Stream;
use lockhouse_gate::{FromApprover, FromSupervisor, Watcher, WatcherKind, WatcherRole};
use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::operator_commands;

/// Version of the protocol on the control socket.
pub const VERSION: u32 = 1;
/// Maximum bytes of a line that an operator's command reads from a supervisor over the control socket.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Maximum bytes of a line that the supervisor reads from an operator's command over the control socket.
const REQUEST_LINE_BYTES_MAX: usize = 4 * 1024;
/// Maximum time until a new connection to the control socket sends its first line. After this time the connection is
/// closed.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time in which an operator's command must read one message of the supervisor. After this time the connection
/// is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of lines that were read from an operator's command and wait to be processed.
const QUEUED_LINES_MAX: usize = 4;

/// Serves one connection to the control socket until either end closes it.
pub(super) async fn serve(stream: &Stream, supervisor: &Supervisor) {
    let mut lines = BufReader::new(stream);
    let hello = timeout(HELLO_TIMEOUT, read_line(&mut lines, REQUEST_LINE_BYTES_MAX)).await;
    let Ok(Ok(Some(hello))) = hello else { return };
    if let Ok(request) = serde_json::from_str(&hello) {
        let _ = send(stream, &operator_commands::carry_out(&request, supervisor).await).await;
        return;
    }
    let Some(first_role) = serde_json::from_str(&hello).ok().and_then(requested_role) else {
        let reason = format!("the first line must be {{\"watch\": {VERSION}}} in this version of lockhouse");
        let _ = send(stream, &FromSupervisor::Refused { id: None, reason }).await;
        return;
    };
    let (line_sender, mut received_lines) = mpsc::channel(QUEUED_LINES_MAX);
    // Reads in a separate future, so that a message to the peer never cancels a half-read line.
    let reading = async move {
        while let Ok(Some(line)) = read_line(&mut lines, REQUEST_LINE_BYTES_MAX).await {
            if line_sender.send(line).await.is_err() {
                return;
            }
        }
    };
    let conversing = async {
        let kind = WatcherKind::Socket(super::peer_user(stream));
        let (mut watcher, mut role) = (supervisor.approvers().queue().watch(kind, first_role), first_role);
        if send(stream, &FromSupervisor::Watching(VERSION)).await.is_err() {
            return;
        }
        loop {
            let sent = tokio::select! {
                message = watcher.next() => match message {
                    Some(message) => send(stream, &*message).await,
                    None => return,
                },
                Some(line) = received_lines.recv() => send(stream, &handle_line(&watcher, &mut role, &line)).await,
            };
            if sent.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = conversing => {}
    }
}

/// Returns the role that a message asks for. `None` for an answer, and for another version of the protocol.
fn requested_role(message: FromApprover) -> Option<WatcherRole> {
    match message {
        FromApprover::Watch(VERSION) => Some(WatcherRole::Approver),
        FromApprover::Observe(VERSION) => Some(WatcherRole::Observer),
        _ => None,
    }
}

/// Handles a later line of a watcher: an answer, or another role.
fn handle_line(watcher: &Watcher, role: &mut WatcherRole, line: &str) -> FromSupervisor {
    match serde_json::from_str(line) {
        Ok(FromApprover::Answer(answer)) => match watcher.answer(&answer) {
            Ok(()) => FromSupervisor::Taken(answer.id),
            Err(why) => FromSupervisor::Refused { id: Some(answer.id), reason: why.to_string() },
        },
        Ok(message) => match requested_role(message) {
            Some(other) if other != *role => {
                watcher.set_role(other);
                *role = other;
                FromSupervisor::Watching(VERSION)
            }
            _ => {
                FromSupervisor::Refused { id: None, reason: "this connection is watching already".to_owned() }
            }
        },
        Err(error) => FromSupervisor::Refused { id: None, reason: format!("this is no answer: {error}") },
    }
}

async fn send(mut stream: &Stream, message: &impl Serialize) -> Result<()> {
    let writing = write_line(&mut stream, message);
    timeout(WRITE_TIMEOUT, writing).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Writes one message as a line of JSON.
pub async fn write_line(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

/// Reads the next line, without its line feed. Returns `None` at the end of the stream. A line of more than
/// `bytes_max` bytes or without a line feed is an error.
pub async fn read_line(from: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> Result<Option<String>> {
    let mut line = Vec::new();
    let read = from.take(bytes_max as u64 + 1).read_until(b'\n', &mut line).await?;
    if read == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(Error::new(ErrorKind::InvalidData, "a line is too long, or incomplete"));
    }
    String::from_utf8(line).map(Some).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
