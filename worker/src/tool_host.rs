//! Interface through which a language engine communicates with the supervisor, the only way out of the sandbox.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use lockhouse_protocol::{CallId, Reply, Stream, WorkerRequest};

/// The result of waiting for a reply of the supervisor.
#[derive(Debug)]
pub enum WaitOutcome {
    /// A reply to a started request.
    Reply(CallId, Reply),
    /// The timeout expired before a reply arrived.
    TimedOut,
    /// The wait ended early, for example because a signal arrived. The language engine must check for an interrupt.
    Interrupted,
}

/// Sends the requests and output of a language engine to the supervisor. No method returns an I/O error, since the
/// process exits when the supervisor closes the connection.
pub trait ToolHost: Sync {
    /// Queues a request and returns its id. The next wait sends the queue; a long queue is sent at once. While the
    /// maximum number of requests is in flight, the request stays queued.
    fn start(&self, request: WorkerRequest) -> CallId;

    /// Returns whether the queue accepts another request. The queue is limited because code could start requests faster
    /// than they are answered, and because the memory limit of the code does not include the queue.
    fn has_room(&self) -> bool;

    /// Sends the queued requests and waits for the next reply to a request of [`Self::start`], without a time limit if
    /// `timeout` is `None`.
    fn next_reply(&self, timeout: Option<Duration>) -> WaitOutcome;

    /// Sends a request and waits for its reply. Replies to other requests are kept for [`Self::next_reply`]. Calls
    /// `stop` when the wait is interrupted, for example by a signal. Returns `None` if `stop` returns true.
    fn ask(&self, request: WorkerRequest, stop: &mut dyn FnMut() -> bool) -> Option<Reply>;

    /// Sends printed output of the program to the supervisor.
    fn print(&self, stream: Stream, text: &str);

    /// Sends the queued requests and output to the supervisor. Requests above the limit of requests in flight stay
    /// queued.
    fn flush(&self);

    /// Returns the replies to started requests that have arrived, without waiting. Event loops call it when
    /// [`Self::socket`] or [`Self::reply_event`] is readable.
    fn drain(&self) -> Vec<(CallId, Reply)>;

    /// Returns the descriptor that becomes readable when the supervisor sends data.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Returns the descriptor that becomes readable when another thread has received a reply for [`Self::drain`].
    fn reply_event(&self) -> BorrowedFd<'_>;
}
