//! One connection to the control socket, and the lines on it.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use crate::supervisor::Supervisor;
use interprocess::local_socket::tokio::Stream;
use lockhouse_gate::{FromPerson, FromSupervisor, Seat, Watcher};
use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::orders;

/// Of the messages.
pub const VERSION: u32 = 1;
/// Bytes of a line from a supervisor.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a line from a person.
const ANSWER_BYTES_MAX: usize = 4 * 1024;
/// How long one who connects may take to say that they watch.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// How long one may take to read what they are told.
const READ_PATIENCE: Duration = Duration::from_secs(10);
/// Lines from a person that wait to be looked at.
const LINES_MAX: usize = 4;

/// Serves one who connected, until either end closes.
pub(super) async fn serve(stream: &Stream, supervisor: &Supervisor) {
    let mut lines = BufReader::new(stream);
    let hello = timeout(HELLO_PATIENCE, read_line(&mut lines, ANSWER_BYTES_MAX)).await;
    let Ok(Ok(Some(hello))) = hello else { return };
    if let Ok(order) = serde_json::from_str(&hello) {
        let _ = tell(stream, &orders::carry_out(&order, supervisor)).await;
        return;
    }
    if serde_json::from_str(&hello).ok() != Some(FromPerson::Watch(VERSION)) {
        let reason = format!("the first line is {{\"watch\": {VERSION}}}, in this version of lockhouse");
        let _ = tell(stream, &FromSupervisor::Refused { id: None, reason }).await;
        return;
    }
    let (said, mut to_answer) = mpsc::channel(LINES_MAX);
    // A line is read to its end, whatever there is to tell meanwhile.
    let reading = async move {
        while let Ok(Some(line)) = read_line(&mut lines, ANSWER_BYTES_MAX).await {
            if said.send(line).await.is_err() {
                return;
            }
        }
    };
    let conversing = async {
        let mut watcher = supervisor.approvers().desk().watch(Seat::Socket(super::person(stream)));
        if tell(stream, &FromSupervisor::Watching(VERSION)).await.is_err() {
            return;
        }
        loop {
            let told = tokio::select! {
                message = watcher.next() => match message {
                    Some(message) => tell(stream, &*message).await,
                    None => return,
                },
                Some(line) = to_answer.recv() => tell(stream, &answered(&watcher, &line)).await,
            };
            if told.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = conversing => {}
    }
}

fn answered(watcher: &Watcher, line: &str) -> FromSupervisor {
    match serde_json::from_str(line) {
        Ok(FromPerson::Answer(answer)) => match watcher.answer(&answer) {
            Ok(()) => FromSupervisor::Taken(answer.id),
            Err(why) => FromSupervisor::Refused { id: Some(answer.id), reason: why.to_string() },
        },
        Ok(FromPerson::Watch(_)) => {
            FromSupervisor::Refused { id: None, reason: "you watch already".to_owned() }
        }
        Err(error) => FromSupervisor::Refused { id: None, reason: format!("this is no answer: {error}") },
    }
}

async fn tell(mut stream: &Stream, message: &impl Serialize) -> Result<()> {
    let telling = write_line(&mut stream, message);
    timeout(READ_PATIENCE, telling).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Writes one message.
pub async fn write_line(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line).await?;
    to.flush().await
}

/// The next line, without its end. None at the end of the stream.
pub async fn read_line(from: &mut (impl AsyncBufRead + Unpin), bytes_max: usize) -> Result<Option<String>> {
    let mut line = Vec::new();
    let read = from.take(bytes_max as u64 + 1).read_until(b'\n', &mut line).await?;
    if read == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(Error::new(ErrorKind::InvalidData, "a line is too long, or has no end"));
    }
    String::from_utf8(line).map(Some).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}
