//! Signals to the connection task that a connection to an upstream server has failed, with the reason.

use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why a connection to an upstream server failed. The message contains no text of the server, so submitted code and the
/// model may read it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionFailure {
    pub message: String,
    /// Whether the server exceeded a limit or broke the protocol. Such a server is restarted with a long delay.
    pub is_violation: bool,
}

impl ConnectionFailure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_violation: false }
    }
}

/// Records why a connection failed, and wakes the tasks that wait for its failure. The end of an HTTP stream or a pipe
/// does not tell the reason, so the signal carries the reason.
#[derive(Clone, Debug, Default)]
pub struct FailureSignal {
    reason: Arc<OnceLock<ConnectionFailure>>,
    token: CancellationToken,
    suspicion: Arc<Notify>,
}

impl FailureSignal {
    /// Records that the connection failed, with the reason. Only the first failure counts.
    pub fn fail(&self, message: &str) {
        self.set(message, false);
    }

    /// Records that the connection failed because the server exceeded a limit or broke the protocol. Only the first
    /// failure counts.
    pub fn fail_for_violation(&self, message: &str) {
        self.set(message, true);
    }

    /// Reports that a request could not be sent, which may be due to this request alone. The connection task finds out
    /// whether the server still answers.
    pub fn suspect(&self) {
        self.suspicion.notify_one();
    }

    /// Waits until a request could not be sent. Cancel-safe.
    pub async fn suspected(&self) {
        self.suspicion.notified().await;
    }

    fn set(&self, message: &str, is_violation: bool) {
        let _ = self.reason.set(ConnectionFailure { message: message.to_owned(), is_violation });
        self.token.cancel();
    }

    /// Returns why the connection has failed; `None` if it has not failed.
    pub fn reason(&self) -> Option<ConnectionFailure> {
        self.reason.get().cloned()
    }

    /// Waits until the connection has failed, and returns the reason.
    pub async fn failed(&self) -> ConnectionFailure {
        self.token.cancelled().await;
        self.reason().unwrap_or_else(|| ConnectionFailure::new(""))
    }
}
