//! Limits what one upstream server can accumulate in the library rmcp, which has no limits of its own. A connection
//! that exceeds a limit fails, which frees the memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lockhouse_mcp::FailureSignal;
use lockhouse_mcp::TrafficLimiter;

/// Maximum total size in bytes of the tools with header parameters that a server may list during a connection. The size
/// is limited because rmcp keeps the schema of every tool name that it has seen.
const ANNOTATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum number of requests of the server that Lockhouse has not answered yet. The number is limited because rmcp
/// answers each request in a task of its own.
const UNANSWERED_MAX: usize = 512;

/// Counts and limits what the server of one connection accumulates in rmcp. Clones share the counters.
#[derive(Clone)]
pub(super) struct BacklogLimiter {
    counts: Arc<BacklogCounts>,
    pub(super) traffic: TrafficLimiter,
}

struct BacklogCounts {
    annotated_bytes: AtomicUsize,
    unanswered_requests: AtomicUsize,
    failure_signal: FailureSignal,
}

impl BacklogLimiter {
    pub(super) fn new(failure_signal: FailureSignal) -> Self {
        let traffic = TrafficLimiter::new(failure_signal.clone());
        let counts = BacklogCounts {
            annotated_bytes: AtomicUsize::new(0),
            unanswered_requests: AtomicUsize::new(0),
            failure_signal,
        };
        Self { counts: Arc::new(counts), traffic }
    }

    pub(super) fn record_header_tool(&self, bytes: usize) {
        if self.counts.annotated_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > ANNOTATED_BYTES_MAX {
            self.counts.failure_signal.fail("it listed more than 16 MiB of tools with header parameters");
        }
    }

    /// Counts a request of the server. Too many unanswered requests fail the connection.
    pub(super) fn record_server_request(&self) {
        if self.counts.unanswered_requests.fetch_add(1, Ordering::Relaxed) >= UNANSWERED_MAX {
            self.counts.failure_signal.fail_for_violation("it sends requests and does not read the answers");
        }
    }

    /// Removes a request of the server from the count of unanswered requests, because it was answered or the answer
    /// could not be sent.
    pub(super) fn record_answer(&self) {
        let one_less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.counts.unanswered_requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }
}
