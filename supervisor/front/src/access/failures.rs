//! What the log says of those who were not let in: who tries a million tokens must not fill a disk with it.

use std::sync::atomic::{AtomicU64, Ordering};

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use super::peer::Peer;
use super::refused::Why;

/// Lines in a minute.
const LINES: u32 = 20;

#[derive(Debug)]
pub(super) struct Failures {
    lines: DefaultDirectRateLimiter,
    unsaid: AtomicU64,
}

impl Default for Failures {
    fn default() -> Self {
        let lines = std::num::NonZeroU32::new(LINES).unwrap_or(std::num::NonZeroU32::MIN);
        Self { lines: RateLimiter::direct(Quota::per_minute(lines)), unsaid: AtomicU64::new(0) }
    }
}

impl Failures {
    pub(super) fn note(&self, why: &Why, peer: Option<&Peer>) {
        if self.lines.check().is_err() {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let who = peer.map_or_else(|| "somebody".to_owned(), Peer::to_string);
        let why = why.in_the_log();
        match self.unsaid.swap(0, Ordering::Relaxed) {
            0 => tracing::warn!("a request of {who} is refused: {why}"),
            unsaid => tracing::warn!("a request of {who} is refused: {why}; before it {unsaid} more were"),
        }
    }
}
