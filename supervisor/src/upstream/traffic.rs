//! What a server may send on one connection without being asked, and which answers it still owes.
//!
//! Everything that an upstream server sends is read on the one thread that serves all clients. An answer was asked for by
//! a call, and calls have limits. Everything else (notifications, requests, answers to nothing, text that is no message)
//! costs the server's own allowance; when it is used up, the server is disconnected.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::RequestId;

use super::allowance::Allowance;
use super::broken::Broken;

/// Unsolicited bytes at once, and how many more each second.
const BURST_BYTES: f64 = 4.0 * 1024.0 * 1024.0;
const BYTES_PER_SECOND: f64 = 256.0 * 1024.0;
/// Bytes that each unsolicited message counts besides its own: small ones cost time as well.
const MESSAGE_BYTES: usize = 256;
/// Requests of ours without an answer that are remembered. A server may still answer one that was given up.
const OWED_MAX: usize = 4096;

const TOO_MUCH: &str = "it sent more messages that nobody asked for than a server may: 4 MiB at once, and 256 KiB each second \
                        after that";

/// Of one connection.
#[derive(Clone)]
pub(super) struct Traffic {
    counts: Arc<Mutex<Counts>>,
    broken: Broken,
}

struct Counts {
    /// rmcp numbers its requests upwards.
    owed: BTreeSet<i64>,
    unsolicited: Allowance,
}

impl Traffic {
    pub(super) fn new(broken: Broken) -> Self {
        let unsolicited = Allowance::new(BURST_BYTES, BYTES_PER_SECOND);
        Self { counts: Arc::new(Mutex::new(Counts { owed: BTreeSet::new(), unsolicited })), broken }
    }

    /// A request of ours goes out.
    pub(super) fn requested(&self, id: &RequestId) {
        if let RequestId::Number(id) = id {
            let mut counts = self.counts();
            counts.owed.insert(*id);
            if counts.owed.len() > OWED_MAX {
                counts.owed.pop_first();
            }
        }
    }

    /// An answer came: whether it was asked for, and is the first one.
    pub(super) fn answered(&self, id: &RequestId) -> bool {
        matches!(id, RequestId::Number(id) if self.counts().owed.remove(id))
    }

    /// Whether any answer could still come.
    pub(super) fn owes(&self) -> bool {
        !self.counts().owed.is_empty()
    }

    /// A message of this length came that nobody asked for: whether the connection goes on.
    pub(super) fn unsolicited(&self, bytes: usize) -> bool {
        self.ignored(bytes + MESSAGE_BYTES)
    }

    /// So many bytes came that are part of no message: whether the connection goes on.
    pub(super) fn ignored(&self, bytes: usize) -> bool {
        let within = self.counts().unsolicited.take(bytes).is_ok();
        if !within {
            self.broken.exceeded(TOO_MUCH);
        }
        within && !self.is_over()
    }

    /// The server sent what no server may send.
    pub(super) fn violated(&self, words: &str) {
        self.broken.exceeded(words);
    }

    pub(super) fn is_over(&self) -> bool {
        self.broken.reason().is_some()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_free_once_and_everything_else_is_counted() {
        let broken = Broken::default();
        let traffic = Traffic::new(broken.clone());
        let id = RequestId::Number(7);
        assert!(!traffic.answered(&id), "nobody asked");
        traffic.requested(&id);
        assert!(traffic.owes() && traffic.answered(&id) && !traffic.answered(&id) && !traffic.owes());
        assert!(!traffic.answered(&RequestId::String("7".into())));
        let mut messages = 0;
        while traffic.unsolicited(100) {
            messages += 1;
        }
        assert!((10_000..20_000).contains(&messages), "{messages}");
        assert!(broken.reason().is_some_and(|reason| reason.is_excess && reason.words == TOO_MUCH));
    }

    #[test]
    fn requests_that_are_never_answered_are_forgotten_in_the_end() {
        let traffic = Traffic::new(Broken::default());
        (0..10_000).for_each(|id| traffic.requested(&RequestId::Number(id)));
        assert!(!traffic.answered(&RequestId::Number(0)) && traffic.answered(&RequestId::Number(9_999)));
    }
}
