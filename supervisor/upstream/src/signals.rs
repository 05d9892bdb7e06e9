//! What callers tell the task that holds a connection.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::definition::ServerLimits;
use super::slots::Slots;

/// Of one connection.
#[derive(Debug)]
pub(super) struct Signals {
    /// Someone needs the server.
    pub(super) wanted: Notify,
    /// A call timed out.
    pub(super) suspect: Notify,
    pub(super) slots: Arc<Slots>,
    answers: watch::Sender<Answers>,
}

/// How calls have fared.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    pub(super) count: u64,
    /// How long the last one took.
    pub(super) latency: Option<Duration>,
}

impl Signals {
    pub(super) fn new(limits: ServerLimits) -> Self {
        Self {
            wanted: Notify::new(),
            suspect: Notify::new(),
            slots: Slots::new(limits),
            answers: watch::Sender::new(Answers::default()),
        }
    }

    /// A call has its answer after this time.
    pub(super) fn note_answer(&self, took: Duration) {
        self.answers.send_modify(|answers| {
            *answers = Answers { count: answers.count + 1, latency: Some(took) };
        });
    }

    pub(super) fn answers(&self) -> watch::Receiver<Answers> {
        self.answers.subscribe()
    }
}
