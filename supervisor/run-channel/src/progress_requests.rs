//! Requests for the progress of a run while it is running. A progress report is made only when one is requested.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use lockhouse_messages::Progress;

/// Maximum number of requests for the progress of one run that wait for an answer. Further requests get no progress
/// report.
const REQUESTERS_MAX: usize = 4;
/// How long a request waits for the progress report of a run. A run that waits for its worker to exit does not answer
/// in time.
const REPLY_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum number of bytes of the end of a run's output that a progress report contains.
/// Bound: AI clients.
pub const TAIL_BYTES_MAX: usize = 1_000;

type ProgressReply = oneshot::Sender<Progress>;

/// Whether a run has been given a worker process, and so has started. Clones belong to the same run.
#[derive(Clone, Debug, Default)]
pub struct RunStarted(Arc<AtomicBool>);

impl RunStarted {
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Sends requests for the progress of one run.
#[derive(Clone, Debug)]
pub struct ProgressHandle {
    has_started: RunStarted,
    sender: mpsc::Sender<ProgressReply>,
}

/// Receives the requests for the progress of one run. The default value receives none.
#[derive(Debug)]
pub struct ProgressRequests {
    has_started: RunStarted,
    receiver: mpsc::Receiver<ProgressReply>,
}

impl Default for ProgressRequests {
    fn default() -> Self {
        progress_channel().1
    }
}

/// Creates the sender and the receiver of requests for the progress of one run.
pub fn progress_channel() -> (ProgressHandle, ProgressRequests) {
    let (sender, receiver) = mpsc::channel(REQUESTERS_MAX);
    let has_started = RunStarted::default();
    (ProgressHandle { has_started: has_started.clone(), sender }, ProgressRequests { has_started, receiver })
}

impl ProgressHandle {
    /// Whether the run has been given a worker process. Before that, the run waits for a worker to become free.
    pub fn has_started(&self) -> bool {
        self.has_started.get()
    }

    /// Requests a progress report and waits for it. Returns `None` if the run still waits for a worker process, has
    /// ended, or does not answer in time.
    pub async fn request(&self) -> Option<Progress> {
        if !self.has_started() {
            return None;
        }
        let (receiver, reply) = oneshot::channel();
        self.sender.try_send(receiver).ok()?;
        tokio::time::timeout(REPLY_TIMEOUT, reply).await.ok()?.ok()
    }
}

impl ProgressRequests {
    pub fn started_flag(&self) -> RunStarted {
        self.has_started.clone()
    }

    pub fn mark_started(&self) {
        self.has_started.0.store(true, Ordering::Relaxed);
    }

    /// Waits for the next request, and returns the sender for its progress report. Returns `None` once all
    /// [`ProgressHandle`]s are dropped.
    pub async fn next(&mut self) -> Option<ProgressReply> {
        self.receiver.recv().await
    }
}
