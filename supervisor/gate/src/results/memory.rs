//! Results in the memory of one process.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use lockhouse_protocol::ResultHandle;

use super::{Bounds, COUNT_MAX, Owner};

/// The results, oldest first.
#[derive(Debug, Default)]
pub(super) struct Memory(VecDeque<Kept>);

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A part of an answer that was too long to be shown.
    Part,
    /// The answer of a run that outlived its request.
    Answer,
}

#[derive(Debug)]
struct Kept {
    owner: Owner,
    handle: ResultHandle,
    kind: Kind,
    json: Arc<str>,
    since: Instant,
}

impl Memory {
    pub(super) fn keep(
        &mut self,
        owner: Owner,
        handle: ResultHandle,
        kind: Kind,
        json: Arc<str>,
        bounds: &Bounds,
        now: Instant,
    ) {
        self.drop_old(bounds, now);
        let bytes = json.len() as u64;
        while self.0.len() >= COUNT_MAX {
            // By number: who keeps a thousand small ones costs nobody a large one.
            let Some(oldest) = self.oldest_of_whoever_keeps_most(|_| 1, (owner, 1)) else { break };
            self.0.remove(oldest);
        }
        while self.bytes() + bytes > bounds.bytes {
            let newcomer = (owner, json.len());
            let Some(oldest) = self.oldest_of_whoever_keeps_most(|kept| kept.json.len(), newcomer) else {
                break;
            };
            self.0.remove(oldest);
        }
        self.0.push_back(Kept { owner, handle, kind, json, since: now });
    }

    pub(super) fn get(
        &mut self,
        owner: Owner,
        handle: &ResultHandle,
        kind: Kind,
        bounds: &Bounds,
        now: Instant,
    ) -> Option<Arc<str>> {
        self.drop_old(bounds, now);
        let is_it = |kept: &&Kept| kept.owner == owner && kept.handle == *handle && kept.kind == kind;
        let found = self.0.iter().find(is_it);
        found.map(|kept| kept.json.clone())
    }

    /// How many there are, and their bytes.
    pub(super) fn count(&mut self, bounds: &Bounds, now: Instant) -> (usize, u64) {
        self.drop_old(bounds, now);
        (self.0.len(), self.bytes())
    }

    fn drop_old(&mut self, bounds: &Bounds, now: Instant) {
        self.0.retain(|kept| now.saturating_duration_since(kept.since) < bounds.lifetime);
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|kept| kept.json.len() as u64).sum()
    }

    /// The result that makes room for one of the newcomer, of this weight. What is to be kept counts as kept: a client that
    /// keeps no more than an equal share of the room loses nothing to one that keeps more.
    fn oldest_of_whoever_keeps_most(
        &self,
        weight: fn(&Kept) -> usize,
        (newcomer, more): (Owner, usize),
    ) -> Option<usize> {
        let of = |owner: Owner| -> usize {
            let kept: usize = self.0.iter().filter(|kept| kept.owner == owner).map(weight).sum();
            kept + if owner == newcomer { more } else { 0 }
        };
        let mut owners: Vec<Owner> = Vec::new();
        for kept in &self.0 {
            if !owners.contains(&kept.owner) {
                owners.push(kept.owner);
            }
        }
        let most = owners.into_iter().max_by_key(|owner| (of(*owner), *owner == newcomer))?;
        self.0.iter().position(|kept| kept.owner == most)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BOUNDS: Bounds = Bounds { bytes: 100, lifetime: Duration::from_secs(60) };

    fn handle(name: &str) -> ResultHandle {
        ResultHandle::new(name).expect("a handle")
    }

    #[test]
    fn what_is_kept_is_its_owners_until_its_time_is_over() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let (one, other) = (Owner::of_connection(), Owner::of_connection());
        memory.keep(one, handle("a"), Kind::Part, "1".into(), &BOUNDS, now);
        let mut get = |owner, name, after| {
            memory.get(owner, &handle(name), Kind::Part, &BOUNDS, now + Duration::from_secs(after))
        };
        assert_eq!(get(one, "a", 59).as_deref(), Some("1"));
        assert_eq!(get(other, "a", 59), None);
        assert_eq!(get(one, "b", 59), None);
        assert_eq!(get(one, "a", 60), None);
    }

    #[test]
    fn room_is_made_by_whoever_keeps_most() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let (little, much) = (Owner::of_connection(), Owner::of_connection());
        memory.keep(little, handle("little"), Kind::Part, "x".repeat(10).into(), &BOUNDS, now);
        for name in ["a", "b", "c", "d"] {
            memory.keep(much, handle(name), Kind::Part, "x".repeat(25).into(), &BOUNDS, now);
        }
        let mut is_there = |owner, name| memory.get(owner, &handle(name), Kind::Part, &BOUNDS, now).is_some();
        assert!(is_there(little, "little") && !is_there(much, "a"));
        assert!(["b", "c", "d"].into_iter().all(|name| is_there(much, name)));
    }

    #[test]
    fn who_keeps_its_share_loses_nothing_to_one_that_wants_more() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let (honest, greedy) = (Owner::of_connection(), Owner::of_connection());
        let mut keep = |owner, name: &str, bytes: usize| {
            memory.keep(owner, handle(name), Kind::Part, "x".repeat(bytes).into(), &BOUNDS, now);
        };
        keep(honest, "one", 25);
        keep(honest, "two", 25);
        // 40 bytes are kept of the greedy one when it wants 25 more: that would be 65 of 100.
        for number in 0..10 {
            keep(greedy, &format!("small-{number}"), 4);
        }
        (0..4).for_each(|number| keep(greedy, &format!("large-{number}"), 25));
        let mut is_there =
            |owner, name: &str| memory.get(owner, &handle(name), Kind::Part, &BOUNDS, now).is_some();
        assert!(is_there(honest, "one") && is_there(honest, "two"));
        assert!(is_there(greedy, "large-3") && !is_there(greedy, "small-0"));
    }

    #[test]
    fn many_small_ones_cost_another_client_no_large_one() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let (few, many) = (Owner::of_connection(), Owner::of_connection());
        let bounds = Bounds { bytes: 1 << 20, ..BOUNDS };
        memory.keep(few, handle("large"), Kind::Part, "x".repeat(100_000).into(), &bounds, now);
        for number in 0..2 * COUNT_MAX {
            memory.keep(many, handle(&number.to_string()), Kind::Part, "1".into(), &bounds, now);
        }
        assert!(memory.get(few, &handle("large"), Kind::Part, &bounds, now).is_some());
        assert_eq!(memory.0.len(), COUNT_MAX);
    }

    #[test]
    fn their_number_is_bounded() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        let bounds = Bounds { bytes: 1 << 20, ..BOUNDS };
        for number in 0..=COUNT_MAX {
            memory.keep(Owner::LOCAL, handle(&number.to_string()), Kind::Part, "1".into(), &bounds, now);
        }
        assert!(memory.get(Owner::LOCAL, &handle("0"), Kind::Part, &bounds, now).is_none());
        assert!(memory.get(Owner::LOCAL, &handle("1"), Kind::Part, &bounds, now).is_some());
    }
}
