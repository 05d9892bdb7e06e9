//! How much of what a server is sending is held at one time: by each answer, and by all of a connection together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers of the full size that a connection may hold at one time.
const LARGEST_AT_ONCE: usize = 2;
/// Bytes that each answer may hold, however much the others do: a small message is never the one that is too large.
const ALWAYS_BYTES: usize = 64 * 1024;

/// Of one connection.
#[derive(Clone)]
pub(super) struct Held {
    bytes: Arc<AtomicUsize>,
    /// Of one answer.
    bytes_max: usize,
}

impl Held {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes: Arc::default(), bytes_max }
    }

    /// For one more answer, or stream of them.
    pub(super) fn share(&self) -> Share {
        Share { held: self.clone(), bytes: 0 }
    }
}

/// What one answer, or stream of them, holds. It is given back on drop.
pub(super) struct Share {
    held: Held,
    bytes: usize,
}

impl Share {
    /// How many bytes it may hold now.
    pub(super) fn bytes_max(&self) -> usize {
        let Held { bytes, bytes_max } = &self.held;
        let others = bytes.load(Ordering::Relaxed).saturating_sub(self.bytes);
        let left = bytes_max.saturating_mul(LARGEST_AT_ONCE).saturating_sub(others);
        left.max(ALWAYS_BYTES).min(*bytes_max)
    }

    /// It holds so many bytes from now on.
    pub(super) fn set(&mut self, bytes: usize) {
        self.held.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.held.bytes.fetch_sub(std::mem::replace(&mut self.bytes, bytes), Ordering::Relaxed);
    }

    /// As [`set`](Self::set), if it may hold so many: whether it may.
    pub(super) fn fits(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.bytes_max();
        if fits {
            self.set(bytes);
        }
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn answers_share_what_a_connection_may_hold_and_give_it_back() {
        let held = Held::new(8 * MIB);
        let mut shares: Vec<Share> = (0..4).map(|_| held.share()).collect();
        assert_eq!(shares[0].bytes_max(), 8 * MIB);
        assert!(shares[0].fits(8 * MIB) && !shares[0].fits(8 * MIB + 1));
        assert!(shares[1].fits(7 * MIB) && shares[2].fits(MIB) && !shares[2].fits(MIB + 1));
        assert!(!shares[3].fits(2 * ALWAYS_BYTES) && shares[3].fits(ALWAYS_BYTES), "a small one always fits");
        shares[1].set(0);
        assert!(shares[2].fits(7 * MIB), "what is given back is there for others");
        shares.remove(0);
        assert!(shares[0].fits(8 * MIB));
        drop(shares);
        assert_eq!(held.bytes.load(Ordering::Relaxed), 0);
    }
}
