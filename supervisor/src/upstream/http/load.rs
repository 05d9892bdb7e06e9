//! What one server may heap up inside rmcp, where nothing else bounds it. Over that the connection is given up, and with
//! it what was heaped up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Broken;

/// Bytes of tools whose parameters go into headers: rmcp keeps the schema of each name that it has seen.
const ANNOTATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Requests of the server that are not answered yet: rmcp answers each in a task of its own.
const UNANSWERED_MAX: usize = 512;

/// Of one connection.
#[derive(Clone)]
pub(super) struct Load(Arc<Counts>);

struct Counts {
    annotated_bytes: AtomicUsize,
    unanswered: AtomicUsize,
    broken: Broken,
}

impl Load {
    pub(super) fn new(broken: Broken) -> Self {
        Self(Arc::new(Counts {
            annotated_bytes: AtomicUsize::new(0),
            unanswered: AtomicUsize::new(0),
            broken,
        }))
    }

    pub(super) fn annotated(&self, bytes: usize) {
        if self.0.annotated_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > ANNOTATED_BYTES_MAX {
            self.0.broken.tell("it has listed more tools with headers than are kept");
        }
    }

    /// The server asks something.
    pub(super) fn asked(&self) {
        if self.0.unanswered.fetch_add(1, Ordering::Relaxed) >= UNANSWERED_MAX {
            self.0.broken.tell("it asks for more than it takes answers to");
        }
    }

    /// One of its requests is answered, or the answer given up.
    pub(super) fn answered(&self) {
        let one_less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.0.unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }
}
