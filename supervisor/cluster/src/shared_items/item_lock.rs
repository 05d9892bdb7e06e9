//! A lock for changes of one item, which one host has at a time.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::SharedItems;
use crate::host_table::Place;
use crate::shared_state::Unavailable;
use crate::state_table::Table;
use crate::stored_forms::{tag_of_value, tag_value};

/// Maximum time for which a host waits until another one has changed the item.
const WAIT_MAX: Duration = Duration::from_secs(45);
/// Interval at which a host tries to take a lock that another one has.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// The right to change an item. Dropping it gives it up, and what was changed is published later.
#[derive(Debug)]
pub struct ItemLock {
    items: SharedItems,
    kind: &'static str,
    item: String,
    key: String,
    /// `None` if the lock was given up.
    revision: Option<u64>,
}

impl ItemLock {
    /// Waits until no other host changes the item.
    pub(super) async fn take(
        items: &SharedItems,
        kind: &'static str,
        item: &str,
    ) -> Result<Self, Unavailable> {
        let (key, deadline) = (super::key(kind, item), Instant::now() + WAIT_MAX);
        let (state, membership) = (items.state(), &items.0.membership);
        let own = tag_value(membership.tag());
        let revision = loop {
            if let Some(revision) = state.create(Table::Locks, &key, own.clone()).await? {
                break revision;
            }
            if let Some(held) = state.get(Table::Locks, &key).await? {
                // A host that has ended gives nothing up.
                if let Some(tag) = tag_of_value(&held.value)
                    && matches!(membership.locate_or_read(tag).await, Place::Nowhere)
                {
                    drop(state.delete(Table::Locks, &key, held.revision).await);
                    continue;
                }
            }
            if Instant::now() >= deadline {
                return Err(Unavailable::changing());
            }
            sleep(RETRY_INTERVAL).await;
        };
        Ok(Self { items: items.clone(), kind, item: item.to_owned(), key, revision: Some(revision) })
    }

    /// Tells the other hosts what was changed, and gives the lock up.
    ///
    /// # Errors
    /// [`Unavailable`] if the others do not know it yet. They are told later.
    pub async fn finish(mut self) -> Result<(), Unavailable> {
        let published = self.items.publish_one(self.kind, &self.item).await;
        if let Some(revision) = self.revision.take() {
            release(&self.items, &self.key, revision).await;
        }
        published
    }
}

impl Drop for ItemLock {
    fn drop(&mut self) {
        if let Some(revision) = self.revision {
            let (items, key) = (self.items.clone(), self.key.clone());
            tokio::spawn(async move { release(&items, &key, revision).await });
        }
    }
}

async fn release(items: &SharedItems, key: &str, revision: u64) {
    if let Err(error) = items.state().delete(Table::Locks, key, revision).await {
        tracing::debug!("a lock stays until it ends by itself: {error}");
    }
}
