//! Whether a host of a cluster may act: only while the others cannot think that it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The time until which this host may act. Clones share it. The clock also runs while the machine sleeps, and nobody sets it.
/// A new one is closed.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<AtomicU64>);

impl Fence {
    /// Whether this host may act now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        since_boot() < Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    /// Permits this host to act until this time after the start of the machine. The permission never becomes shorter.
    pub fn extend_until(&self, since_boot: Duration) {
        self.0.fetch_max(since_boot.as_millis().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Returns the time since the start of the machine, with the time in which it slept.
#[must_use]
pub fn since_boot() -> Duration {
    // The kernel has this clock since Linux 2.6.39.
    clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_open_until_its_end() {
        let fence = Fence::default();
        assert!(!fence.is_open());
        let shared = fence.clone();
        shared.extend_until(since_boot() + Duration::from_secs(60));
        assert!(fence.is_open());
        fence.extend_until(Duration::ZERO);
        assert!(fence.is_open(), "an earlier end has no effect");
    }
}
