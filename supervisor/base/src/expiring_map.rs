//! A bounded map whose entries expire, for what waits for somebody to return.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// A map of at most `entries_max` entries, each of which expires after `lifetime`.
#[derive(Debug)]
pub struct ExpiringMap<K, V> {
    entries: HashMap<K, Entry<V>>,
    entries_max: usize,
    lifetime: Duration,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    since: Instant,
}

impl<K: Clone + Eq + Hash, V> ExpiringMap<K, V> {
    /// Creates an empty map.
    #[must_use]
    pub fn new(entries_max: usize, lifetime: Duration) -> Self {
        Self { entries: HashMap::new(), entries_max, lifetime }
    }

    /// Adds an entry. If there are too many, removes the oldest one first.
    pub fn insert(&mut self, key: K, value: V) {
        let lifetime = self.lifetime;
        self.entries.retain(|_, entry| entry.since.elapsed() < lifetime);
        if self.entries.len() >= self.entries_max && !self.entries.contains_key(&key) {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.since).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| self.entries.remove(&oldest));
        }
        self.entries.insert(key, Entry { value, since: Instant::now() });
    }

    /// Returns the value of an entry that has not expired.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).filter(|entry| entry.since.elapsed() < self.lifetime).map(|entry| &entry.value)
    }

    /// Removes an entry. Returns its value, if the entry has not expired.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.remove(key)?;
        (entry.since.elapsed() < self.lifetime).then_some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_makes_room_for_a_new_one() {
        let mut map = ExpiringMap::new(2, Duration::from_secs(60));
        (1..=3).for_each(|number| map.insert(number, number * 10));
        assert_eq!([1, 2, 3].map(|number| map.get(&number).copied()), [None, Some(20), Some(30)]);
        map.insert(2, 21);
        assert_eq!((map.get(&3).copied(), map.remove(&2), map.remove(&2)), (Some(30), Some(21), None));
    }

    #[test]
    fn an_expired_entry_is_not_returned() {
        let mut map = ExpiringMap::new(2, Duration::ZERO);
        map.insert(1, 10);
        assert_eq!((map.get(&1).copied(), map.remove(&1)), (None, None));
    }
}
