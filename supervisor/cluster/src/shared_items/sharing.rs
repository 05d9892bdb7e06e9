//! Access to the shared items for the other parts of the supervisor, which may get it before this process joins a cluster.

use std::sync::{Arc, OnceLock};

use super::{ItemLock, SharedItems};
use crate::shared_state::Unavailable;

/// The items that all hosts share. Empty if this process is part of no cluster, or its hosts share none. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Sharing(Arc<OnceLock<SharedItems>>);

impl Sharing {
    /// Lets all hosts share items. Later calls have no effect.
    pub fn begin(&self, items: SharedItems) {
        let _ = self.0.set(items);
    }

    /// Returns one item.
    pub fn item(&self, kind: &'static str, name: String) -> SharedItem {
        SharedItem { sharing: self.clone(), kind, name }
    }

    /// Tells the other hosts what was changed here. If that fails, they are told later.
    pub async fn publish(&self) {
        if let Some(items) = self.0.get()
            && let Err(error) = items.publish().await
        {
            tracing::warn!("the other hosts do not know a change yet: {error}");
        }
    }
}

/// One item that all hosts share, if they share any.
#[derive(Clone, Debug)]
pub struct SharedItem {
    sharing: Sharing,
    kind: &'static str,
    name: String,
}

impl SharedItem {
    /// Waits until no other host changes the item, and then until this host has its newest content. `None` if the hosts share none.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn lock(&self) -> Result<Option<ItemLock>, Unavailable> {
        match self.sharing.0.get() {
            Some(items) => items.lock(self.kind, &self.name).await.map(Some),
            None => Ok(None),
        }
    }
}
