//! What one server may heap up inside rmcp, where nothing else bounds it. Over that the connection is given up, and with
//! it what was heaped up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::broken::Broken;
use crate::traffic::Traffic;

/// Bytes of tools whose parameters go into headers: rmcp keeps the schema of each name that it has seen.
const ANNOTATED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Requests of the server that are not answered yet: rmcp answers each in a task of its own.
const UNANSWERED_MAX: usize = 512;

/// Of one connection.
#[derive(Clone)]
pub(super) struct Load {
    counts: Arc<Counts>,
    pub(super) traffic: Traffic,
}

struct Counts {
    annotated_bytes: AtomicUsize,
    unanswered: AtomicUsize,
    broken: Broken,
}

impl Load {
    pub(super) fn new(broken: Broken) -> Self {
        let traffic = Traffic::new(broken.clone());
        let counts = Counts { annotated_bytes: AtomicUsize::new(0), unanswered: AtomicUsize::new(0), broken };
        Self { counts: Arc::new(counts), traffic }
    }

    pub(super) fn annotated(&self, bytes: usize) {
        if self.counts.annotated_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > ANNOTATED_BYTES_MAX {
            self.counts.broken.tell("it has listed more tools with headers than are kept");
        }
    }

    /// The server asks something.
    pub(super) fn asked(&self) {
        if self.counts.unanswered.fetch_add(1, Ordering::Relaxed) >= UNANSWERED_MAX {
            self.counts.broken.exceeded("it asks for more than it takes answers to");
        }
    }

    /// One of its requests is answered, or the answer given up.
    pub(super) fn answered(&self) {
        let one_less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.counts.unanswered.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
    }
}
