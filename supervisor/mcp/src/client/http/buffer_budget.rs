//! Memory budget for HTTP responses of an upstream server that are being received: for each response, and for all
//! responses of a connection together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget of a connection, as the number of responses of the maximum size that it may buffer at one time.
/// Bound: upstream servers.
const FULL_SIZE_MESSAGES: usize = 2;
/// Number of bytes that each response may always buffer, so that a small message never fails for lack of budget.
/// Bound: upstream servers.
const GUARANTEED_BYTES: usize = 64 * 1024;

/// The memory budget of one connection to an upstream server. Clones share it.
#[derive(Clone)]
pub(super) struct BufferBudget {
    bytes: Arc<AtomicUsize>,
    /// Maximum size of one response, in bytes.
    bytes_max: usize,
}

impl BufferBudget {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes: Arc::default(), bytes_max }
    }

    /// Returns a share of the budget for one more response or event stream. The share holds no bytes yet.
    pub(super) fn share(&self) -> BufferShare {
        BufferShare { budget: self.clone(), bytes: 0 }
    }
}

/// The bytes of the budget that one response or event stream holds. Dropping the share releases them.
pub(super) struct BufferShare {
    budget: BufferBudget,
    bytes: usize,
}

impl BufferShare {
    /// Returns how many bytes this share may hold now, given what the other shares of the connection hold: at least
    /// [`GUARANTEED_BYTES`], and at most the maximum size of one response.
    pub(super) fn bytes_max(&self) -> usize {
        let BufferBudget { bytes, bytes_max } = &self.budget;
        let others = bytes.load(Ordering::Relaxed).saturating_sub(self.bytes);
        let left = bytes_max.saturating_mul(FULL_SIZE_MESSAGES).saturating_sub(others);
        left.max(GUARANTEED_BYTES).min(*bytes_max)
    }

    /// Sets the number of bytes that this share holds, without a check of the budget.
    pub(super) fn set_held_bytes(&mut self, bytes: usize) {
        self.budget.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.bytes.fetch_sub(std::mem::replace(&mut self.bytes, bytes), Ordering::Relaxed);
    }

    /// Sets the number of bytes that this share holds, if the budget permits this number. Returns whether it did.
    pub(super) fn try_hold(&mut self, bytes: usize) -> bool {
        let try_hold = bytes <= self.bytes_max();
        if try_hold {
            self.set_held_bytes(bytes);
        }
        try_hold
    }
}

impl Drop for BufferShare {
    fn drop(&mut self) {
        self.set_held_bytes(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn answers_share_what_a_connection_may_hold_and_give_it_back() {
        let budget = BufferBudget::new(8 * MIB);
        let mut shares: Vec<BufferShare> = (0..4).map(|_| budget.share()).collect();
        assert_eq!(shares[0].bytes_max(), 8 * MIB);
        assert!(shares[0].try_hold(8 * MIB) && !shares[0].try_hold(8 * MIB + 1));
        assert!(shares[1].try_hold(7 * MIB) && shares[2].try_hold(MIB) && !shares[2].try_hold(MIB + 1));
        assert!(
            !shares[3].try_hold(2 * GUARANTEED_BYTES) && shares[3].try_hold(GUARANTEED_BYTES),
            "a small one always fits"
        );
        shares[1].set_held_bytes(0);
        assert!(shares[2].try_hold(7 * MIB), "what is given back is there for others");
        shares.remove(0);
        assert!(shares[0].try_hold(8 * MIB));
        drop(shares);
        assert_eq!(budget.bytes.load(Ordering::Relaxed), 0);
    }
}
