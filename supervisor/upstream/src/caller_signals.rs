//! Signals from the callers of an upstream server to its connection task: that the server is needed, that a call timed
//! out, and statistics of answered calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::call_concurrency::CallSlots;
use super::definition::ServerLimits;

/// The signals from callers to the connection task of one upstream server.
#[derive(Debug)]
pub(super) struct CallerSignals {
    /// Notified when a caller needs the server, so that the connection task starts the server if it is stopped.
    pub(super) demand: Notify,
    /// Notified when a call has timed out, so that the connection task pings the server.
    pub(super) call_timed_out: Notify,
    pub(super) slots: Arc<CallSlots>,
    answers: watch::Sender<CallStats>,
}

/// Statistics about the calls that one upstream server has answered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallStats {
    pub(super) answered_calls: u64,
    /// How long the most recently answered call took; `None` before the first answer.
    pub(super) latency: Option<Duration>,
}

impl CallerSignals {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Self {
            demand: Notify::new(),
            call_timed_out: Notify::new(),
            slots: CallSlots::new(limits),
            answers: watch::Sender::new(CallStats::default()),
        }
    }

    /// Records that a call was answered, and how long the answer took.
    pub(super) fn record_answer(&self, took: Duration) {
        self.answers.send_modify(|answers| {
            *answers = CallStats { answered_calls: answers.answered_calls + 1, latency: Some(took) };
        });
    }

    pub(super) fn answers(&self) -> watch::Receiver<CallStats> {
        self.answers.subscribe()
    }
}
