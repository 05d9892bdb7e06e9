//! Which files are stored, for whom and since when, and which of them make room for others. Does no I/O: the methods
//! return the handles of the files to remove.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use lockhouse_messages::Owner;
use lockhouse_protocol::ResultHandle;

use super::{COUNT_MAX, StoredFile};

/// The stored files, oldest first.
#[derive(Debug, Default)]
pub(super) struct Index {
    files: Vec<Entry>,
    /// The bytes of files that are being written, by their owners.
    unfinished: BTreeMap<Owner, u64>,
}

#[derive(Debug)]
struct Entry {
    owner: Owner,
    stored: StoredFile,
    since: SystemTime,
}

impl Index {
    /// Creates an index of files of the user at the command line, with the times at which they were stored.
    pub(super) fn with_files(mut files: Vec<(StoredFile, SystemTime)>) -> Self {
        files.sort_by_key(|(_, since)| *since);
        let entry = |(stored, since)| Entry { owner: Owner::LOCAL, stored, since };
        Self { files: files.into_iter().map(entry).collect(), unfinished: BTreeMap::new() }
    }

    /// Returns the file with this handle, of this owner or, if it is `None`, of any.
    pub(super) fn get(&self, owner: Option<Owner>, handle: &ResultHandle) -> Option<StoredFile> {
        let is_it =
            |entry: &&Entry| entry.stored.handle == *handle && owner.is_none_or(|owner| owner == entry.owner);
        self.files.iter().find(is_it).map(|entry| entry.stored.clone())
    }

    pub(super) fn with_prefix(&self, prefix: &str) -> Vec<StoredFile> {
        let found = self.files.iter().filter(|entry| entry.stored.handle.as_str().starts_with(prefix));
        found.map(|entry| entry.stored.clone()).collect()
    }

    pub(super) fn usage(&self) -> (usize, u64) {
        (self.files.len(), self.files.iter().map(|entry| entry.stored.bytes).sum())
    }

    /// Counts bytes that an owner is about to write. Returns the files to remove, so that all bytes together are at
    /// most `most`.
    pub(super) fn reserve(&mut self, owner: Owner, bytes: u64, most: u64) -> Vec<ResultHandle> {
        *self.unfinished.entry(owner).or_default() += bytes;
        let mut evicted = Vec::new();
        while self.usage().1 + self.unfinished.values().sum::<u64>() > most {
            let Some(handle) = self.evict(|entry| entry.stored.bytes, &self.unfinished.clone()) else {
                break;
            };
            evicted.push(handle);
        }
        evicted
    }

    /// Forgets bytes that were reserved for a file that is not stored.
    pub(super) fn release(&mut self, owner: Owner, bytes: u64) {
        if let Some(unfinished) = self.unfinished.get_mut(&owner) {
            *unfinished = unfinished.saturating_sub(bytes);
        }
        self.unfinished.retain(|_, bytes| *bytes > 0);
    }

    /// Adds a file whose bytes were reserved. Returns the files to remove because there are too many.
    pub(super) fn insert(
        &mut self,
        owner: Owner,
        stored: StoredFile,
        since: SystemTime,
    ) -> Vec<ResultHandle> {
        self.release(owner, stored.bytes);
        let mut evicted = Vec::new();
        while self.files.len() >= COUNT_MAX {
            evicted.extend(self.evict(|_| 1, &BTreeMap::from([(owner, 1)])));
        }
        self.files.push(Entry { owner, stored, since });
        evicted
    }

    /// Removes the files that have expired. If the clock was set back, the difference counts as the age.
    pub(super) fn remove_expired(&mut self, lifetime: Duration, now: SystemTime) -> Vec<ResultHandle> {
        let age = |since: SystemTime| now.duration_since(since).unwrap_or_else(|ahead| ahead.duration());
        let expired = self.files.extract_if(.., |entry| age(entry.since) >= lifetime);
        expired.map(|entry| entry.stored.handle).collect()
    }

    pub(super) fn remove_of(&mut self, owner: Owner) -> Vec<ResultHandle> {
        self.files.extract_if(.., |entry| entry.owner == owner).map(|entry| entry.stored.handle).collect()
    }

    /// Removes the oldest file of the owner whose files have the largest total weight, including `additional`. So an
    /// owner that uses at most an equal share of the store loses no file to one that uses more.
    fn evict(
        &mut self,
        weight: fn(&Entry) -> u64,
        additional: &BTreeMap<Owner, u64>,
    ) -> Option<ResultHandle> {
        let mut weights: BTreeMap<Owner, u64> = BTreeMap::new();
        for entry in &self.files {
            *weights.entry(entry.owner).or_default() += weight(entry);
        }
        let total = |(owner, weight): &(&Owner, &u64)| *weight + additional.get(*owner).unwrap_or(&0);
        let (most, _) = weights.iter().max_by_key(total)?;
        let oldest = self.files.iter().position(|entry| entry.owner == *most)?;
        Some(self.files.remove(oldest).stored.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(name: &str, bytes: u64) -> StoredFile {
        let handle = ResultHandle::new(name).expect("a handle");
        StoredFile { handle, name: name.into(), media_type: "a/b".into(), bytes }
    }

    fn add(index: &mut Index, owner: Owner, name: &str, bytes: u64) {
        index.reserve(owner, bytes, 100);
        index.insert(owner, stored(name, bytes), SystemTime::now());
    }

    fn names(index: &Index) -> String {
        index.files.iter().map(|entry| entry.stored.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_largest_user_makes_room() {
        let (mut index, little, much) = (Index::default(), Owner::of_connection(1), Owner::of_connection(2));
        add(&mut index, little, "l", 30);
        for name in ["a", "b", "c"] {
            add(&mut index, much, name, 30);
        }
        assert_eq!(names(&index), "l b c");
        // A file that is being written counts for its owner.
        index.reserve(little, 60, 100);
        assert_eq!(names(&index), "c");
        index.release(little, 60);
        assert_eq!(index.unfinished.len(), 0);
    }

    #[test]
    fn a_file_belongs_to_its_owner_until_it_expires() {
        let (mut index, one, other) = (Index::default(), Owner::of_connection(3), Owner::of_connection(4));
        add(&mut index, one, "a", 1);
        let handle = ResultHandle::new("a").expect("a handle");
        assert!(index.get(Some(one), &handle).is_some() && index.get(None, &handle).is_some());
        assert_eq!(index.get(Some(other), &handle), None);
        let hour = Duration::from_secs(3_600);
        assert_eq!(index.remove_expired(hour, SystemTime::now()).len(), 0);
        assert_eq!(index.remove_expired(hour, SystemTime::now() + hour), [handle]);
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let (mut index, few, many) = (Index::default(), Owner::of_connection(5), Owner::of_connection(6));
        add(&mut index, few, "few", 1);
        for number in 0..COUNT_MAX + 5 {
            index.insert(many, stored(&number.to_string(), 0), SystemTime::now());
        }
        assert_eq!(index.files.len(), COUNT_MAX);
        assert_eq!(index.files[0].stored.name, "few");
    }
}
