//! The items that all hosts share, such as logins and skills. Each host has a copy of every item in its own files, and NATS has the newest
//! content, sealed with a key of the hosts.
//!
//! Whoever changes an item on a host writes the copy there. Then the host publishes it, by compare-and-set, and the others replace
//! theirs. A change that must see all earlier ones takes the lock of the item.

mod item_lock;
mod item_store;
mod sharing;

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lockhouse_base::files::FileVersion;
use lockhouse_base::sealing_key::SealingKey;
use lockhouse_messages::Base64Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::Mutex;
use tokio::time::sleep;

pub use item_lock::ItemLock;
pub use item_store::ItemStore;
pub use sharing::{SharedItem, Sharing};

use crate::membership::Membership;
use crate::shared_state::{Change, SharedState, StoredValue, Unavailable};
use crate::state_table::Table;
use crate::stored_forms::digest_key;

/// Interval at which a host looks for copies that other processes of it have changed. What it changes itself, it publishes at once.
const INTERVAL: Duration = Duration::from_secs(5);
/// A copy counts as changed later than what NATS has only if this is so by more than the clocks of this host and of NATS differ.
const CLOCK_MARGIN: Duration = Duration::from_secs(10);

/// The items that all hosts share. Clones are of the same items.
#[derive(Clone, Debug)]
pub struct SharedItems(Arc<SharedItemsInner>);

#[derive(Debug)]
struct SharedItemsInner {
    membership: Membership,
    sealing: SealingKey,
    stores: Vec<Arc<dyn ItemStore>>,
    /// The known items in NATS, by key.
    known: Mutex<HashMap<String, Known>>,
    /// The keys of items whose copies could not be replaced, so that this is tried again.
    not_copied: parking_lot::Mutex<HashSet<String>>,
}

/// The newest known content of an item in NATS.
#[derive(Debug)]
enum Known {
    /// It was not sealed with the key of this host, which neither uses nor replaces it.
    Foreign { revision: u64 },
    Item {
        revision: u64,
        name: String,
        /// `None` if the item was removed.
        digest: Option<[u8; 32]>,
        /// The version of the copy with this content. `None` if there is no such copy.
        copy: Option<FileVersion>,
    },
}

/// An item as it is sealed.
#[derive(Serialize, Deserialize)]
struct Sealed {
    name: String,
    /// `None` if the item was removed.
    content: Option<Base64Bytes>,
}

impl SharedItems {
    /// Returns the items that all hosts share, of which this host has copies in these stores. `None` if they share none, because they
    /// have no key for it.
    pub fn new(membership: &Membership, stores: Vec<Arc<dyn ItemStore>>) -> Option<Self> {
        let sealing = membership.sealing()?.clone();
        let (membership, known, not_copied) = (membership.clone(), Mutex::default(), Default::default());
        Some(Self(Arc::new(SharedItemsInner { membership, sealing, stores, known, not_copied })))
    }

    /// Waits until no other host changes an item, and then until this host has its newest content.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub async fn lock(&self, kind: &'static str, item: &str) -> Result<ItemLock, Unavailable> {
        let lock = ItemLock::take(self, kind, item).await?;
        let key = key(kind, item);
        match self.read_again(&key).await? {
            true => Ok(lock),
            false => Err(Unavailable::not_copied()),
        }
    }

    /// Tells the other hosts what was changed here.
    ///
    /// # Errors
    /// [`Unavailable`] if they do not know all of it yet. They are told later.
    pub async fn publish(&self) -> Result<(), Unavailable> {
        for store in &self.0.stores {
            let mut known = self.0.known.lock().await;
            let copies = match in_files(store, |store| store.list()).await {
                Ok(copies) => copies,
                Err(error) => {
                    tracing::warn!("the {} of this host cannot be listed: {error}", store.kind());
                    continue;
                }
            };
            for (name, version) in &copies {
                self.publish_copy(&mut known, store, name, Some(*version)).await?;
            }
            for name in removed(&known, store.kind(), &copies) {
                self.publish_copy(&mut known, store, &name, None).await?;
            }
        }
        Ok(())
    }

    /// Reads an item from NATS. Returns whether this host has its newest content then, or nobody has any.
    async fn read_again(&self, key: &str) -> Result<bool, Unavailable> {
        let is_newest = match self.state().get(Table::Items, key).await? {
            Some(stored) => self.receive(&mut *self.0.known.lock().await, key, &stored).await,
            None => true,
        };
        if is_newest {
            self.0.not_copied.lock().remove(key);
        }
        Ok(is_newest)
    }

    /// Replaces the copies that could not be replaced before.
    async fn copy_again(&self) -> Result<(), Unavailable> {
        let keys = self.0.not_copied.lock().clone();
        for key in keys {
            self.read_again(&key).await?;
        }
        Ok(())
    }

    async fn publish_one(&self, kind: &str, item: &str) -> Result<(), Unavailable> {
        let Some(store) = self.store(kind) else { return Ok(()) };
        let mut known = self.0.known.lock().await;
        self.publish_copy(&mut known, store, item, store.version(item)).await
    }

    /// Publishes a copy with this version, unless its content is that in NATS.
    async fn publish_copy(
        &self,
        known: &mut HashMap<String, Known>,
        store: &Arc<dyn ItemStore>,
        name: &str,
        version: Option<FileVersion>,
    ) -> Result<(), Unavailable> {
        let key = key(store.kind(), name);
        let (before, revision) = match known.get(&key) {
            Some(Known::Foreign { .. }) => return Ok(()),
            Some(Known::Item { copy, .. }) if *copy == version => return Ok(()),
            Some(Known::Item { revision, digest, .. }) => (*digest, Some(*revision)),
            None => (None, None),
        };
        let owned = name.to_owned();
        let content = match in_files(store, move |store| store.read(&owned)).await {
            Ok(content) => content,
            Err(error) => {
                tracing::debug!("{} {name} is not shared: {error}", store.kind());
                return Ok(());
            }
        };
        let digest = content.as_deref().map(digest);
        let revision = match revision {
            Some(revision) if digest == before => Some(revision),
            revision => {
                let Some(sealed) = self.seal(&key, name, content) else { return Ok(()) };
                if sealed.len() > Table::Items.value_bytes_max().unsigned_abs() as usize {
                    tracing::warn!("{} {name} is too long for the other hosts, and only here", store.kind());
                    return Ok(());
                }
                match revision {
                    Some(revision) => self.state().update(Table::Items, &key, sealed, revision).await?,
                    None => self.state().create(Table::Items, &key, sealed).await?,
                }
            }
        };
        if let Some(revision) = revision {
            known.insert(key, Known::Item { revision, name: name.to_owned(), digest, copy: version });
        } else if let Some(stored) = self.state().get(Table::Items, &key).await? {
            // Another host has published the item first.
            self.receive(known, &key, &stored).await;
        }
        Ok(())
    }

    /// Tells the other hosts what is changed here, and replaces the copies of what they have changed. Runs until it is dropped.
    pub async fn keep(&self) -> Infallible {
        let publish = async {
            loop {
                if let Err(error) = self.publish().await {
                    tracing::debug!("the other hosts do not know all changes yet: {error}");
                }
                sleep(INTERVAL).await;
            }
        };
        let copy_again = async {
            loop {
                sleep(INTERVAL).await;
                if let Err(error) = self.copy_again().await {
                    tracing::debug!("some copies of this host are not the newest ones: {error}");
                }
            }
        };
        let hear = async |Change { key, value }: Change| {
            if let Some(stored) = value {
                self.receive(&mut *self.0.known.lock().await, &key, &stored).await;
            }
        };
        tokio::select! {
            never = publish => never,
            never = copy_again => never,
            never = self.state().follow(Table::Items, hear) => never,
        }
    }

    /// Replaces the copy of an item with what NATS has, unless the copy was changed later. Returns `false` if it cannot be replaced.
    async fn receive(&self, known: &mut HashMap<String, Known>, key: &str, stored: &StoredValue) -> bool {
        let revision = stored.revision;
        let before = match known.get(key) {
            Some(Known::Foreign { revision: known } | Known::Item { revision: known, .. })
                if *known >= revision =>
            {
                return true;
            }
            Some(Known::Item { copy, .. }) => *copy,
            Some(Known::Foreign { .. }) | None => None,
        };
        let Some(Sealed { name, content }) = self.unseal(key, &stored.value) else {
            tracing::warn!(
                "what another host shares as {key} is not used: it is sealed with another shared_key of [cluster]"
            );
            known.insert(key.to_owned(), Known::Foreign { revision });
            return true;
        };
        let kind = kind_of(key);
        let Some(store) = self.store(kind) else { return true };
        let digest = content.as_ref().map(|content| digest(&content.0));
        let copy = store.version(&name);
        let is_newer = copy.is_some_and(|copy| copy.made_at() > stored.written + CLOCK_MARGIN);
        if copy != before && is_newer {
            // It is published after this.
            known.insert(key.to_owned(), Known::Item { revision, name, digest, copy: None });
            return true;
        }
        let item = name.clone();
        let write = move |store: &dyn ItemStore| {
            store.write(&item, content.as_ref().map(|content| content.0.as_slice()))?;
            Ok(store.version(&item))
        };
        match in_files(store, write).await {
            Ok(copy) => {
                known.insert(key.to_owned(), Known::Item { revision, name, digest, copy });
                true
            }
            Err(error) => {
                if self.0.not_copied.lock().insert(key.to_owned()) {
                    tracing::warn!("the copy of {kind} {name} of this host is not replaced yet: {error}");
                }
                false
            }
        }
    }

    fn seal(&self, key: &str, name: &str, content: Option<Vec<u8>>) -> Option<Bytes> {
        let sealed = Sealed { name: name.to_owned(), content: content.map(Base64Bytes) };
        let text = serde_json::to_vec(&sealed).ok()?;
        self.0.sealing.encrypt(key.as_bytes(), &text).map(Bytes::from)
    }

    fn unseal(&self, key: &str, value: &[u8]) -> Option<Sealed> {
        serde_json::from_slice(&self.0.sealing.decrypt(key.as_bytes(), value.to_vec())?).ok()
    }

    fn store(&self, kind: &str) -> Option<&Arc<dyn ItemStore>> {
        self.0.stores.iter().find(|store| store.kind() == kind)
    }

    fn state(&self) -> &SharedState {
        self.0.membership.state()
    }
}

/// Returns the names of the known items of one kind that have no copy any more.
fn removed(known: &HashMap<String, Known>, kind: &str, copies: &HashMap<String, FileVersion>) -> Vec<String> {
    let names = known.iter().filter_map(|(key, known)| match known {
        Known::Item { name, copy: Some(_), .. } if kind_of(key) == kind => Some(name),
        _ => None,
    });
    names.filter(|name| !copies.contains_key(*name)).cloned().collect()
}

fn digest(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

/// Returns the key of an item in NATS, which does not show its name.
fn key(kind: &str, item: &str) -> String {
    format!("{kind}.{}", digest_key(item))
}

fn kind_of(key: &str) -> &str {
    key.split_once('.').map_or(key, |(kind, _)| kind)
}

/// Uses a store on another thread, because access to files takes time.
async fn in_files<T: Send + 'static>(
    store: &Arc<dyn ItemStore>,
    what: impl FnOnce(&dyn ItemStore) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let store = store.clone();
    let done = tokio::task::spawn_blocking(move || what(&*store)).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}
