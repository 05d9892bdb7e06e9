//! Stores results in memory. The limits are shared fairly by all AI clients.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use lockhouse_messages::ResultListing;
use lockhouse_protocol::ResultHandle;

use super::{COUNT_MAX, Owner, ResultLimits, listing};

/// The stored results, oldest first.
#[derive(Debug, Default)]
pub(super) struct MemoryStore(VecDeque<StoredResult>);

/// The kind of a stored result. A handle of one kind does not find a result of the other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultKind {
    /// A value or output of a run that is too long for the answer to the AI client.
    Part,
    /// The whole answer of a background run.
    Answer,
}

#[derive(Debug)]
pub(super) struct StoredResult {
    pub(super) owner: Owner,
    pub(super) handle: ResultHandle,
    pub(super) kind: ResultKind,
    pub(super) json: Arc<str>,
    /// When its lifetime began.
    pub(super) since: Instant,
}

impl MemoryStore {
    /// Stores a result. Before that, removes expired results, and evicts others if the limits require it.
    pub(super) fn store(&mut self, result: StoredResult, bounds: &ResultLimits, now: Instant) {
        self.remove_expired(bounds, now);
        let (owner, bytes) = (result.owner, result.json.len());
        while self.0.len() >= COUNT_MAX {
            // Evicts a result of the client with the most results: an AI client with a thousand small results must not
            // displace a large result of another client.
            let Some(oldest) = self.eviction_candidate(|_| 1, owner, 1) else { break };
            self.0.remove(oldest);
        }
        while self.bytes() + bytes as u64 > bounds.bytes {
            let Some(oldest) = self.eviction_candidate(|stored| stored.json.len(), owner, bytes) else {
                break;
            };
            self.0.remove(oldest);
        }
        self.0.push_back(result);
    }

    /// Returns the result of this AI client (`owner`) with this handle and kind, as JSON. Returns `None` if there
    /// is none or it has expired.
    pub(super) fn get(
        &mut self,
        owner: Owner,
        handle: &ResultHandle,
        kind: ResultKind,
        bounds: &ResultLimits,
        now: Instant,
    ) -> Option<Arc<str>> {
        self.remove_expired(bounds, now);
        let is_it =
            |stored: &&StoredResult| stored.owner == owner && stored.handle == *handle && stored.kind == kind;
        let found = self.0.iter().find(is_it);
        found.map(|stored| stored.json.clone())
    }

    /// Whether this AI client (`owner`) has a result with this handle, whatever its kind.
    pub(super) fn has(
        &mut self,
        owner: Owner,
        handle: &ResultHandle,
        bounds: &ResultLimits,
        now: Instant,
    ) -> bool {
        self.remove_expired(bounds, now);
        self.0.iter().any(|stored| stored.owner == owner && stored.handle == *handle)
    }

    /// Returns the result with this handle, whatever its owner and kind, as JSON.
    pub(super) fn get_of_any_owner(
        &mut self,
        handle: &ResultHandle,
        bounds: &ResultLimits,
        now: Instant,
    ) -> Option<Arc<str>> {
        self.remove_expired(bounds, now);
        self.0.iter().find(|stored| stored.handle == *handle).map(|stored| stored.json.clone())
    }

    pub(super) fn list(&mut self, bounds: &ResultLimits, now: Instant) -> Vec<ResultListing> {
        self.remove_expired(bounds, now);
        let listing = |stored: &StoredResult| {
            let kind = match stored.kind {
                ResultKind::Part => "value",
                ResultKind::Answer => "answer",
            };
            let age = now.saturating_duration_since(stored.since);
            listing(&stored.handle, kind, stored.json.len() as u64, age, bounds)
        };
        self.0.iter().map(listing).collect()
    }

    /// Returns the number of stored results that have not expired, and the sum of their bytes.
    pub(super) fn usage(&mut self, bounds: &ResultLimits, now: Instant) -> (usize, u64) {
        self.remove_expired(bounds, now);
        (self.0.len(), self.bytes())
    }

    /// Deletes all results of this owner.
    pub(super) fn forget(&mut self, owner: Owner) {
        self.0.retain(|stored| stored.owner != owner);
    }

    fn remove_expired(&mut self, bounds: &ResultLimits, now: Instant) {
        self.0.retain(|stored| now.saturating_duration_since(stored.since) < bounds.lifetime);
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|stored| stored.json.len() as u64).sum()
    }

    /// Returns the index of the stored result to evict: the oldest result of the AI client whose results have the
    /// largest total weight. The weight of the new result counts for its owner. So a client that uses at most an
    /// equal share of the store loses no result to a client that uses more.
    ///
    /// `weight` returns the weight of a stored result: 1 if the number of results is limited, or its length if their
    /// bytes are limited. `newcomer` is the owner of the new result, and `additional` its weight.
    fn eviction_candidate(
        &self,
        weight: fn(&StoredResult) -> usize,
        newcomer: Owner,
        additional: usize,
    ) -> Option<usize> {
        let of = |owner: Owner| -> usize {
            let stored: usize = self.0.iter().filter(|stored| stored.owner == owner).map(weight).sum();
            stored + if owner == newcomer { additional } else { 0 }
        };
        let mut owners: Vec<Owner> = Vec::new();
        for stored in &self.0 {
            if !owners.contains(&stored.owner) {
                owners.push(stored.owner);
            }
        }
        let most = owners.into_iter().max_by_key(|owner| (of(*owner), *owner == newcomer))?;
        self.0.iter().position(|stored| stored.owner == most)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: ResultLimits = ResultLimits { bytes: 100, lifetime: Duration::from_secs(60) };

    fn handle(name: &str) -> ResultHandle {
        ResultHandle::new(name).expect("a handle")
    }

    fn value(owner: Owner, name: &str, bytes: usize, since: Instant) -> StoredResult {
        let json = "1".repeat(bytes).into();
        StoredResult { owner, handle: handle(name), kind: ResultKind::Part, json, since }
    }

    #[test]
    fn a_result_belongs_to_its_owner_until_it_expires() {
        let (mut memory, now) = (MemoryStore::default(), Instant::now());
        let (one, other) = (Owner::of_connection(1), Owner::of_connection(2));
        memory.store(value(one, "a", 1, now), &LIMITS, now);
        let mut get = |owner, name, after| {
            memory.get(owner, &handle(name), ResultKind::Part, &LIMITS, now + Duration::from_secs(after))
        };
        assert_eq!(get(one, "a", 59).as_deref(), Some("1"));
        assert_eq!(get(other, "a", 59), None);
        assert_eq!(get(one, "b", 59), None);
        assert_eq!(get(one, "a", 60), None);
    }

    #[test]
    fn results_of_the_largest_user_are_evicted_first() {
        let (mut memory, now) = (MemoryStore::default(), Instant::now());
        let (little, much) = (Owner::of_connection(3), Owner::of_connection(4));
        memory.store(value(little, "little", 10, now), &LIMITS, now);
        for name in ["a", "b", "c", "d"] {
            memory.store(value(much, name, 25, now), &LIMITS, now);
        }
        let mut is_there =
            |owner, name| memory.get(owner, &handle(name), ResultKind::Part, &LIMITS, now).is_some();
        assert!(is_there(little, "little") && !is_there(much, "a"));
        assert!(["b", "c", "d"].into_iter().all(|name| is_there(much, name)));
    }

    #[test]
    fn a_client_within_its_share_loses_no_result() {
        let (mut memory, now) = (MemoryStore::default(), Instant::now());
        let (honest, greedy) = (Owner::of_connection(5), Owner::of_connection(6));
        let mut keep = |owner, name: &str, bytes: usize| {
            memory.store(value(owner, name, bytes, now), &LIMITS, now);
        };
        keep(honest, "one", 25);
        keep(honest, "two", 25);
        // The greedy client stores 40 bytes and adds 25, which makes 65 of 100.
        for number in 0..10 {
            keep(greedy, &format!("small-{number}"), 4);
        }
        (0..4).for_each(|number| keep(greedy, &format!("large-{number}"), 25));
        let mut is_there =
            |owner, name: &str| memory.get(owner, &handle(name), ResultKind::Part, &LIMITS, now).is_some();
        assert!(is_there(honest, "one") && is_there(honest, "two"));
        assert!(is_there(greedy, "large-3") && !is_there(greedy, "small-0"));
    }

    #[test]
    fn many_small_results_do_not_evict_a_large_one_of_another_client() {
        let (mut memory, now) = (MemoryStore::default(), Instant::now());
        let (few, many) = (Owner::of_connection(7), Owner::of_connection(8));
        let bounds = ResultLimits { bytes: 1 << 20, ..LIMITS };
        memory.store(value(few, "large", 100_000, now), &bounds, now);
        for number in 0..2 * COUNT_MAX {
            memory.store(value(many, &number.to_string(), 1, now), &bounds, now);
        }
        assert!(memory.get(few, &handle("large"), ResultKind::Part, &bounds, now).is_some());
        assert_eq!(memory.0.len(), COUNT_MAX);
    }

    #[test]
    fn the_number_of_results_is_bounded() {
        let (mut memory, now) = (MemoryStore::default(), Instant::now());
        let bounds = ResultLimits { bytes: 1 << 20, ..LIMITS };
        for number in 0..=COUNT_MAX {
            memory.store(value(Owner::LOCAL, &number.to_string(), 1, now), &bounds, now);
        }
        assert!(memory.get(Owner::LOCAL, &handle("0"), ResultKind::Part, &bounds, now).is_none());
        assert!(memory.get(Owner::LOCAL, &handle("1"), ResultKind::Part, &bounds, now).is_some());
    }
}
