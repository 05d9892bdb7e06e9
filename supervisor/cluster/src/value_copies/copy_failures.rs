//! Why values are not copied: said in the log once while it lasts, and in the metrics.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time without a failure after which a copy that was written ends a period of failures.
const QUIET: Duration = Duration::from_secs(10);

/// The failures to copy values.
#[derive(Debug, Default)]
pub(super) struct CopyFailures(Mutex<Option<Failure>>);

#[derive(Debug)]
struct Failure {
    reason: String,
    last: Instant,
}

impl CopyFailures {
    /// Notes that a value was not copied.
    pub(super) fn note(&self, reason: impl ToString) {
        let (reason, last) = (reason.to_string(), Instant::now());
        let mut failure = self.0.lock();
        if failure.is_none() {
            tracing::warn!("values are not copied to S3, and end with this host: {reason}");
        }
        *failure = Some(Failure { reason, last });
    }

    /// Notes that a value was copied.
    pub(super) fn note_success(&self) {
        let mut failure = self.0.lock();
        if failure.as_ref().is_some_and(|failure| failure.last.elapsed() >= QUIET) {
            *failure = None;
            tracing::info!("values are copied to S3 again");
        }
    }

    /// Returns why the last value that was not copied was not. `None` after the period of failures.
    pub(super) fn reason(&self) -> Option<String> {
        self.0.lock().as_ref().map(|failure| failure.reason.clone())
    }
}
