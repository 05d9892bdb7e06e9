//! The engine's only way out of the sandbox.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use lockhouse_protocol::{CallId, Reply, Request, Stream};

/// What a wait for replies came to.
#[derive(Debug)]
pub enum Waited {
    /// A reply to a request that was started.
    Reply(CallId, Reply),
    /// The time ran out first, or nothing is under way to wait for.
    TimedOut,
    /// A signal arrived: the engine looks whether it was told to stop.
    Interrupted,
}

/// Carries an engine's requests and output to the supervisor. When the supervisor is gone the process ends, so no
/// method fails.
pub trait ToolHost: Sync {
    /// Queues a request. It leaves with the next wait, or at once when the queue is long; above the agreed number under
    /// way it stays queued until replies make room.
    fn start(&self, request: Request) -> CallId;

    /// Whether the queue takes another request. Code can start them faster than they are answered, and none of the
    /// queue is in the code's own memory.
    fn has_room(&self) -> bool;

    /// Sends what is queued and waits for the next reply, at most for `timeout`; forever without one.
    fn next_reply(&self, timeout: Option<Duration>) -> Waited;

    /// Sends one request and waits for its reply; replies to other requests are kept for [`Self::next_reply`].
    /// `None` when a signal arrived and `stop` then says that the engine must stop.
    fn ask(&self, request: Request, stop: &mut dyn FnMut() -> bool) -> Option<Reply>;

    /// Passes on what the code printed.
    fn print(&self, stream: Stream, text: &str);

    /// Sends what is queued.
    fn flush(&self);

    /// Replies to started requests that are there, without waiting. For event loops, which wait on the two descriptors.
    fn drain(&self) -> Vec<(CallId, Reply)>;

    /// Readable when the supervisor has sent something.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Readable when another thread has read a reply for [`Self::drain`].
    fn handed_over(&self) -> BorrowedFd<'_>;
}
