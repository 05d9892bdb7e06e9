//! A fair queue of requests that wait for a worker: first in, first out for each owner, and round-robin between
//! owners.
//!
//! The next request is that of the owner with the fewest running executions. Among owners with equal numbers, the
//! owner that has waited longest for its turn is next. So an owner that floods the queue gets only capacity that is
//! free, and at most its share while other owners wait.

use std::collections::{BTreeMap, VecDeque};

use lockhouse_messages::Owner;

/// Maximum numbers of executions that wait for a worker: of all AI clients together, and of each AI client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Maximum number of waiting executions of all AI clients together.
    pub all: usize,
    /// Maximum number of waiting executions of each AI client.
    pub of_one: usize,
}

/// A queue of requests for workers. The queue serves all owners in turn, beginning with the owner that has the
/// fewest running executions.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    bounds: QueueLimits,
    /// The waiting requests of each owner that has any, in round-robin order of the owners.
    lines: VecDeque<(Owner, VecDeque<T>)>,
    /// The number of running executions of each owner that has any.
    running: BTreeMap<Owner, usize>,
}

impl<T> FairQueue<T> {
    pub(super) fn new(bounds: QueueLimits) -> Self {
        Self { bounds, lines: VecDeque::new(), running: BTreeMap::new() }
    }

    /// Returns the number of waiting requests of all owners.
    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds a request to the queue. Returns the rejected request; `None` if no request was rejected. The new
    /// request is rejected if its owner has reached the limit for one owner. If the whole queue is full, the
    /// latest request of the owner with the most waiting requests is rejected, so that one owner cannot keep out
    /// the others. But if this owner would then have fewer waiting requests than the owner of the new request, the
    /// new request is rejected instead.
    pub(super) fn push(&mut self, owner: Owner, item: T) -> Option<T> {
        let own = self.waiting_of(owner);
        if own >= self.bounds.of_one {
            return Some(item);
        }
        let mut left = None;
        if self.len() >= self.bounds.all {
            let longest = self.lines.iter_mut().max_by_key(|(_, line)| line.len());
            match longest {
                // Even with one request less, that owner has at least as many requests as the owner of the new one will
                // have.
                Some((_, line)) if line.len() > own + 1 => left = line.pop_back(),
                _ => return Some(item),
            }
        }
        match self.lines.iter_mut().find(|(of, _)| *of == owner) {
            Some((_, line)) => line.push_back(item),
            None => self.lines.push_back((owner, VecDeque::from([item]))),
        }
        left
    }

    /// Removes the next request from the queue and returns it. Its execution counts as running until
    /// [`Self::release`]. Returns `None` if no request waits.
    pub(super) fn next(&mut self) -> Option<(Owner, T)> {
        let running = |owner: &Owner| self.running.get(owner).copied().unwrap_or(0);
        let (at, _) = self.lines.iter().enumerate().min_by_key(|(_, (owner, _))| running(owner))?;
        let (owner, mut line) = self.lines.remove(at)?;
        let item = line.pop_front()?;
        if !line.is_empty() {
            self.lines.push_back((owner, line));
        }
        *self.running.entry(owner).or_default() += 1;
        Some((owner, item))
    }

    /// Records that a running execution of this owner has ended.
    pub(super) fn release(&mut self, owner: Owner) {
        if let Some(running) = self.running.get_mut(&owner) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&owner);
            }
        }
    }

    /// Returns the number of running executions of all owners.
    pub(super) fn running(&self) -> usize {
        self.running.values().sum()
    }

    /// Removes the waiting requests for which `stays` returns `false`.
    pub(super) fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        self.lines.retain_mut(|(_, line)| {
            line.retain(&stays);
            !line.is_empty()
        });
    }

    /// Removes all waiting requests from the queue and returns them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.lines.drain(..).flat_map(|(_, line)| line)
    }

    /// Returns the number of waiting requests of this owner.
    fn waiting_of(&self, owner: Owner) -> usize {
        self.lines.iter().find(|(of, _)| *of == owner).map_or(0, |(_, line)| line.len())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lockhouse_base::principal::Principal;

    fn owners(count: usize) -> Vec<Owner> {
        (0..count).map(|_| Principal::for_new_connection().owner()).collect()
    }

    fn bounds(all: usize, of_one: usize) -> QueueLimits {
        QueueLimits { all, of_one }
    }

    #[test]
    fn an_owner_that_floods_is_at_most_one_run_ahead() {
        let owners = owners(2);
        let mut queue = FairQueue::new(bounds(256, 256));
        (0..100).for_each(|number| assert_eq!(queue.push(owners[0], number), None));
        queue.push(owners[1], 1_000);
        // Neither owner has a running execution, so the first to arrive is next.
        assert_eq!(queue.next(), Some((owners[0], 0)));
        assert_eq!(queue.next(), Some((owners[1], 1_000)));
        assert_eq!(queue.next(), Some((owners[0], 1)));
    }

    #[test]
    fn only_the_owner_with_most_items_makes_room() {
        let owners = owners(3);
        let mut queue = FairQueue::new(bounds(4, 3));
        let left: Vec<_> = (0..4).map(|number| queue.push(owners[0], number)).collect();
        assert_eq!(left, [None, None, None, Some(3)], "an owner's own bound");
        assert_eq!(queue.push(owners[1], 10), None);
        assert_eq!(
            queue.push(owners[1], 11),
            Some(2),
            "the queue is full: the latest item of the owner with three"
        );
        assert_eq!(queue.push(owners[1], 12), Some(12), "two and two");
        assert_eq!(queue.push(owners[2], 20), Some(11));
        assert_eq!(queue.len(), 4);
    }

    /// A random operation on the fair queue in a property test.
    #[derive(Clone, Debug)]
    enum Event {
        Push(usize),
        /// Takes the next request from the queue.
        Next,
        /// Ends the oldest running execution.
        Release,
    }

    fn event(owners: usize) -> impl Strategy<Value = Event> {
        prop_oneof![3 => (0..owners).prop_map(Event::Push), 2 => Just(Event::Next), 2 => Just(Event::Release)]
    }

    proptest! {
        #[test]
        fn no_owner_starves(events in prop::collection::vec(event(5), 0..400), slots in 1_usize..6) {
            let owners = owners(5);
            let mut queue = FairQueue::new(bounds(40, 20));
            let (mut running, mut number) = (VecDeque::new(), 0);
            // How often each owner without a running execution was passed over since its last turn.
            let mut passed = [0; 5];
            for event in events {
                match event {
                    Event::Push(owner) => {
                        number += 1;
                        queue.push(owners[owner], number);
                    }
                    Event::Release => {
                        if let Some(owner) = running.pop_front() {
                            queue.release(owner);
                        }
                    }
                    Event::Next if running.len() < slots => {
                        let least = owners.iter().filter(|o| queue.waiting_of(**o) > 0)
                            .map(|o| queue.running.get(o).copied().unwrap_or(0)).min();
                        let waiting: Vec<usize> = (0..5)
                            .filter(|o| queue.waiting_of(owners[*o]) > 0 && !queue.running.contains_key(&owners[*o]))
                            .collect();
                        let before = queue.len();
                        if let Some((owner, _)) = queue.next() {
                            running.push_back(owner);
                            // The chosen owner has fewest running executions, so no owner exceeds its share while
                            // another waits.
                            prop_assert_eq!(Some(queue.running[&owner] - 1), least);
                            prop_assert_eq!(queue.len(), before - 1);
                            for other in waiting {
                                passed[other] = if owners[other] == owner { 0 } else { passed[other] + 1 };
                                prop_assert!(passed[other] < 5, "passed over {} times", passed[other]);
                            }
                        } else {
                            prop_assert_eq!(before, 0, "a slot stays free while an owner waits");
                        }
                    }
                    Event::Next => {}
                }
                prop_assert!(queue.len() <= 40 && queue.running() == running.len());
                prop_assert!(owners.iter().all(|o| queue.waiting_of(*o) <= 20));
                for owner in 0..5 {
                    if queue.waiting_of(owners[owner]) == 0 || queue.running.contains_key(&owners[owner]) { passed[owner] = 0; }
                }
            }
        }

        #[test]
        fn each_owners_runs_keep_their_order(pushed in prop::collection::vec(0_usize..4, 0..100)) {
            let owners = owners(4);
            let mut queue = FairQueue::new(bounds(1_000, 1_000));
            for (number, owner) in pushed.iter().enumerate() {
                queue.push(owners[*owner], number);
            }
            let mut last: BTreeMap<Owner, usize> = BTreeMap::new();
            while let Some((owner, number)) = queue.next() {
                prop_assert!(last.insert(owner, number).is_none_or(|before| before < number));
                queue.release(owner);
            }
            prop_assert_eq!(queue.len(), 0);
        }
    }
}
