//! Amounts that count towards a limit as long as they exist.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts an amount, such as a number of bytes, until it is dropped.
#[derive(Debug)]
pub struct Counted {
    total: Arc<AtomicUsize>,
    amount: usize,
}

impl Counted {
    /// Returns `None` if the total would exceed `max`. One amount may exceed it alone.
    pub fn new(total: &Arc<AtomicUsize>, amount: usize, max: usize) -> Option<Self> {
        let before = total.fetch_add(amount, Ordering::Relaxed);
        let counted = Self { total: total.clone(), amount };
        (before == 0 || before.saturating_add(amount) <= max).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.total.fetch_sub(self.amount, Ordering::Relaxed);
    }
}
