//! Writes lines to the standard input of an upstream server's process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::answer_error::ResponseError;
use crate::client::message_sender::MessageSender;

/// Maximum number of requests and cancellations that may wait to be written to the server. Calls that time out leave their
/// lines.
/// Bound: upstream servers.
const UNWRITTEN_MAX: usize = 512;

/// Writes lines to the standard input of one process. Clones write to the same process. A line is written completely
/// before the next one begins, and waits as long as the server reads nothing: a server that is busy is not a server that
/// has failed.
#[derive(Clone, Debug)]
pub(crate) struct LineWriter {
    stdin: Arc<Mutex<Option<ChildStdin>>>,
    /// Number of requests and cancellations that are not yet written completely.
    unwritten: Arc<AtomicUsize>,
}

impl LineWriter {
    pub(crate) fn new(stdin: ChildStdin) -> Self {
        let stdin = Arc::new(Mutex::new(Some(stdin)));
        Self { stdin, unwritten: Arc::default() }
    }

    fn write_counted(
        &self,
        line: Vec<u8>,
        unwritten: UnwrittenLine,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let stdin = self.stdin.clone();
        async move {
            let _unwritten = unwritten;
            write_rest(stdin.lock_owned().await, &line).await
        }
    }

    /// Starts to write a line, which must include its line feed, and does not wait. A task writes the bytes that
    /// the pipe cannot accept at once. So the line is written completely even if the caller stops waiting for the answer.
    ///
    /// # Errors
    /// Fails if the pipe is closed, or if too many of them wait to be written.
    pub(crate) fn start_write(&self, line: Vec<u8>) -> io::Result<()> {
        let unwritten = UnwrittenLine::new(&self.unwritten);
        let Ok(mut stdin) = self.stdin.clone().try_lock_owned() else {
            if self.unwritten.load(Ordering::Relaxed) > UNWRITTEN_MAX {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            return spawn(self.write_counted(line, unwritten));
        };
        let pipe = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let written = match pipe.write(&line).now_or_never() {
            Some(written) => written?,
            None => 0,
        };
        if written == line.len() {
            return Ok(());
        }
        spawn(async move {
            let _unwritten = unwritten;
            write_rest(stdin, &line[written..]).await
        })
    }
}

impl MessageSender for LineWriter {
    fn send_request(&self, _: i64, line: Vec<u8>) -> Result<(), ResponseError> {
        self.start_write(line).map_err(|_| ResponseError::Closed)
    }

    fn cancel_request(&self, _: i64, notification: Vec<u8>) {
        let _ = self.start_write(notification);
    }

    /// Waits while the pipe is full. The future must not be dropped before it completes, since part of the line may have been
    /// written.
    fn send(&self, line: Vec<u8>) -> BoxFuture<'_, Result<(), ResponseError>> {
        let stdin = self.stdin.clone();
        async move { write_rest(stdin.lock_owned().await, &line).await.map_err(|_| ResponseError::Closed) }
            .boxed()
    }

    /// Closes the standard input of the process. If a line is being written, waits until the line is complete.
    fn close(&self) -> BoxFuture<'_, ()> {
        async move { drop(self.stdin.lock().await.take()) }.boxed()
    }
}

async fn write_rest(mut stdin: OwnedMutexGuard<Option<ChildStdin>>, rest: &[u8]) -> io::Result<()> {
    let pipe = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    pipe.write_all(rest).await?;
    pipe.flush().await
}

/// Runs a write in a new task and ignores its result: if the pipe breaks, the connection ends, which fails the calls in
/// flight. Returns an error if no Tokio runtime is running.
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
