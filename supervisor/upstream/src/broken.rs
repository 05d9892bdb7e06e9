//! Why a connection is of no more use, told once to the task that holds it.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// In words of ours alone: code and the model may read them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reason {
    pub(super) words: String,
    /// Whether the server sent more than a server may: such a server is not started again soon.
    pub(super) is_excess: bool,
}

impl Reason {
    pub(super) fn failed(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_excess: false }
    }
}

/// One connection. Neither HTTP nor a pipe has an end that says why.
#[derive(Clone, Default)]
pub(super) struct Broken {
    reason: Arc<OnceLock<Reason>>,
    token: CancellationToken,
}

impl Broken {
    /// The connection failed.
    pub(super) fn tell(&self, words: &str) {
        self.set(words, false);
    }

    /// The server sent more than a server may.
    pub(super) fn exceeded(&self, words: &str) {
        self.set(words, true);
    }

    fn set(&self, words: &str, is_excess: bool) {
        let _ = self.reason.set(Reason { words: words.to_owned(), is_excess });
        self.token.cancel();
    }

    /// If it is.
    pub(super) fn reason(&self) -> Option<Reason> {
        self.reason.get().cloned()
    }

    /// Waits until it is.
    pub(super) async fn told(&self) -> Reason {
        self.token.cancelled().await;
        self.reason().unwrap_or_else(|| Reason::failed(""))
    }
}
