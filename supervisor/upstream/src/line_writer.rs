//! Writes lines to the standard input of an upstream server's process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::timeout;

use super::connection_failure::FailureSignal;

/// Maximum number of lines that may wait to be written to the server; with more, the connection fails. rmcp answers
/// each request of a server in a task of its own, so a server that sends requests and never reads would otherwise
/// accumulate tasks without limit.
const UNWRITTEN_MAX: usize = 512;

pub(super) const UNREAD: &str = "it does not read its standard input";

/// Writes lines to the standard input of one process. Clones write to the same process. A line is written completely
/// before the next one begins.
#[derive(Clone, Debug)]
pub(super) struct LineWriter {
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    /// Number of lines that are not yet written completely.
    unwritten: Arc<AtomicUsize>,
    /// Maximum time to write a line. After that the connection fails, since a partly written line cannot be withdrawn.
    write_timeout: Duration,
    failure_signal: FailureSignal,
}

impl LineWriter {
    pub(super) fn new(stdin: ChildStdin, write_timeout: Duration, failure_signal: FailureSignal) -> Self {
        let stdin = Arc::new(Mutex::new(Some(stdin)));
        Self { stdin, unwritten: Arc::default(), write_timeout, failure_signal }
    }

    /// Writes a line, which must include its line feed. Waits while the pipe is full. The future must not be dropped
    /// before it completes, since part of the line may have been written.
    pub(super) fn write(&self, line: Vec<u8>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (writer, unwritten) = (self.clone(), UnwrittenLine::new(&self.unwritten));
        async move {
            let _unwritten = unwritten;
            let stdin = writer.stdin.clone().lock_owned().await;
            writer.write_rest(stdin, &line).await
        }
    }

    /// Starts to write a line, which must include its line feed, and does not wait. A task writes the bytes that the
    /// pipe cannot accept at once. So the line is written completely even if the caller stops waiting for the answer.
    pub(super) fn start_write(&self, line: Vec<u8>) -> io::Result<()> {
        let Ok(mut stdin) = self.stdin.clone().try_lock_owned() else {
            return spawn(self.write(line));
        };
        let pipe = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let written = match pipe.write(&line).now_or_never() {
            Some(written) => written?,
            None => 0,
        };
        if written == line.len() {
            return Ok(());
        }
        let (writer, unwritten) = (self.clone(), UnwrittenLine::new(&self.unwritten));
        spawn(async move {
            let _unwritten = unwritten;
            writer.write_rest(stdin, &line[written..]).await
        })
    }

    /// Whether too many lines wait to be written, because the server does not read its standard input.
    pub(super) fn is_overloaded(&self) -> bool {
        self.unwritten.load(Ordering::Relaxed) > UNWRITTEN_MAX
    }

    /// Closes the standard input of the process. If a line is being written, waits until the line is complete.
    pub(super) async fn close(&self) {
        self.stdin.lock().await.take();
    }

    async fn write_rest(
        &self,
        mut stdin: OwnedMutexGuard<Option<ChildStdin>>,
        rest: &[u8],
    ) -> io::Result<()> {
        let pipe = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let written = async {
            pipe.write_all(rest).await?;
            pipe.flush().await
        };
        timeout(self.write_timeout, written).await.unwrap_or_else(|_| {
            stdin.take();
            self.failure_signal.fail(UNREAD);
            Err(io::ErrorKind::TimedOut.into())
        })
    }
}

/// Runs a write in a new task and ignores its result: if the write times out, it ends the connection, which fails the
/// calls in flight. Returns an error if no Tokio runtime is running.
fn spawn(write: impl Future<Output = io::Result<()>> + Send + 'static) -> io::Result<()> {
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    runtime.spawn(async move { drop(write.await) });
    Ok(())
}

/// Guard that counts one line as not yet written. Dropping it removes the line from the count.
struct UnwrittenLine(Arc<AtomicUsize>);

impl UnwrittenLine {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for UnwrittenLine {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
