//! The host of a warm-up: answers the requests of the engine's own program by itself, because a worker must not ask the
//! supervisor for anything before it has a job.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use lockhouse_protocol::{CallId, Reply, Stream, WorkerRequest};

use crate::channel::Channel;
use crate::tool_host::{ToolHost, WaitOutcome};

/// The result of each call.
const RESULT: &[u8] = br#"{"structured":{"n":3}}"#;
/// The reply to the check of the calls before the program runs.
const CHECKED: &[u8] = br#"{"findings":[],"tools":[]}"#;

/// Answers the requests of a warm-up, which asks and does not start requests. Event loops watch the descriptors of the worker's
/// connection, on which nothing is sent.
pub(crate) struct WarmUpHost(pub(crate) &'static Channel);

impl ToolHost for WarmUpHost {
    fn ask(&self, request: WorkerRequest, _stop: &mut dyn FnMut() -> bool) -> Option<Reply> {
        Some(Ok(match request {
            WorkerRequest::CheckCalls { .. } => CHECKED.to_vec(),
            _ => RESULT.to_vec(),
        }))
    }

    fn start(&self, _request: WorkerRequest) -> CallId {
        CallId(0)
    }

    fn has_room(&self) -> bool {
        false
    }

    fn next_reply(&self, _timeout: Option<Duration>) -> WaitOutcome {
        WaitOutcome::TimedOut
    }

    fn print(&self, _stream: Stream, _text: &str) {}

    fn flush(&self) {}

    fn drain(&self) -> Vec<(CallId, Reply)> {
        Vec::new()
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.0.socket()
    }

    fn reply_event(&self) -> BorrowedFd<'_> {
        self.0.reply_event()
    }
}
