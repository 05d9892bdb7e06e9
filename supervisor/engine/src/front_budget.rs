//! How many requests a front may send until another one takes its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The number of requests that a front may still send before it is replaced. It serves further ones until then. Clones share
/// the number.
#[derive(Clone, Debug)]
pub struct FrontBudget(Arc<FrontBudgetInner>);

#[derive(Debug)]
struct FrontBudgetInner {
    left: AtomicU64,
    spent: Notify,
}

impl FrontBudget {
    #[must_use]
    pub fn new(requests: u64) -> Self {
        Self(Arc::new(FrontBudgetInner { left: AtomicU64::new(requests), spent: Notify::new() }))
    }

    /// Counts a request.
    pub(crate) fn count(&self) {
        let subtract = |left: u64| left.checked_sub(1);
        if self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract) == Ok(1) {
            self.0.spent.notify_one();
        }
    }

    /// Waits until no request is left.
    pub async fn spent(&self) {
        self.0.spent.notified().await;
    }
}
