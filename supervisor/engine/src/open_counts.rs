//! Counts what is open for each key, such as the connections of a host, and refuses more than a maximum.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// The numbers of what is open, by key. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct OpenCounts<K: Eq + Hash>(Arc<Mutex<HashMap<K, usize>>>);

/// Counts until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenCount<K: Eq + Hash> {
    counts: OpenCounts<K>,
    key: K,
}

impl<K: Eq + Hash> Default for OpenCounts<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone> OpenCounts<K> {
    /// Counts one more. Returns `None` if `max` are open for this key.
    pub(crate) fn open(&self, key: K, max: usize) -> Option<OpenCount<K>> {
        let mut counts = self.0.lock();
        let count = counts.entry(key.clone()).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(OpenCount { counts: Self(self.0.clone()), key })
    }
}

impl<K: Eq + Hash> Drop for OpenCount<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_own_maximum() {
        let counts = OpenCounts::default();
        let first = counts.open("a", 2).expect("the first one");
        let _second = counts.open("a", 2).expect("the second one");
        assert!(counts.open("a", 2).is_none() && counts.open("b", 2).is_some());
        drop(first);
        assert!(counts.open("a", 2).is_some());
        assert_eq!(counts.0.lock().len(), 1, "keys without anything open are forgotten");
    }
}
