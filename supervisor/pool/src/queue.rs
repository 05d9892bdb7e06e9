//! Executions that wait for a worker: those of one owner in the order of their arrival, and the owners in turn.
//!
//! Whoever has the fewest that run comes first, and of those with equally many whoever has waited longest for a turn. So one
//! that floods has as many places as are left over, and no more than its share of them as soon as others wait.

use std::collections::{BTreeMap, VecDeque};

use lockhouse_base::principal::Owner;

/// How many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    pub all: usize,
    pub of_one: usize,
}

/// What waits, and how many of each owner run.
#[derive(Debug)]
pub(super) struct Queue<T> {
    bounds: QueueBounds,
    /// In the order of their turns. No line is empty.
    lines: VecDeque<(Owner, VecDeque<T>)>,
    /// No number is 0.
    running: BTreeMap<Owner, usize>,
}

impl<T> Queue<T> {
    pub(super) fn new(bounds: QueueBounds) -> Self {
        Self { bounds, lines: VecDeque::new(), running: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Takes a place in the queue. What had to leave it: nothing, the newcomer, or what came last of whoever has most in a
    /// queue that is full, so that one owner's flood keeps nobody else out.
    pub(super) fn push(&mut self, owner: Owner, item: T) -> Option<T> {
        let own = self.waiting_of(owner);
        if own >= self.bounds.of_one {
            return Some(item);
        }
        let mut left = None;
        if self.len() >= self.bounds.all {
            let longest = self.lines.iter_mut().max_by_key(|(_, line)| line.len());
            match longest {
                // With one less they have as much as the newcomer, at least.
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

    /// Whose turn it is; it runs from now on, until [`Self::released`].
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

    /// One that ran has ended.
    pub(super) fn released(&mut self, owner: Owner) {
        if let Some(running) = self.running.get_mut(&owner) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(&owner);
            }
        }
    }

    /// How many run.
    pub(super) fn running(&self) -> usize {
        self.running.values().sum()
    }

    pub(super) fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        self.lines.retain_mut(|(_, line)| {
            line.retain(&stays);
            !line.is_empty()
        });
    }

    /// Everything that waits.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.lines.drain(..).flat_map(|(_, line)| line)
    }

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
        (0..count).map(|_| Principal::of_connection().owner()).collect()
    }

    fn bounds(all: usize, of_one: usize) -> QueueBounds {
        QueueBounds { all, of_one }
    }

    #[test]
    fn one_that_floods_is_no_further_ahead_than_one_run() {
        let of = owners(2);
        let mut queue = Queue::new(bounds(256, 256));
        (0..100).for_each(|number| assert_eq!(queue.push(of[0], number), None));
        queue.push(of[1], 1_000);
        // Both have none that runs: the first one was there first.
        assert_eq!(queue.next(), Some((of[0], 0)));
        assert_eq!(queue.next(), Some((of[1], 1_000)));
        assert_eq!(queue.next(), Some((of[0], 1)));
    }

    #[test]
    fn whoever_has_most_makes_room_and_nobody_else() {
        let of = owners(3);
        let mut queue = Queue::new(bounds(4, 3));
        let left: Vec<_> = (0..4).map(|number| queue.push(of[0], number)).collect();
        assert_eq!(left, [None, None, None, Some(3)], "an owner's own bound");
        assert_eq!(queue.push(of[1], 10), None);
        assert_eq!(queue.push(of[1], 11), Some(2), "the queue is full: the last of whoever has three");
        assert_eq!(queue.push(of[1], 12), Some(12), "two and two");
        assert_eq!(queue.push(of[2], 20), Some(11));
        assert_eq!(queue.len(), 4);
    }

    /// What happens to a queue.
    #[derive(Clone, Debug)]
    enum Event {
        Push(usize),
        /// A place is free: whoever's turn it is takes it.
        Next,
        /// The oldest of those that run ends.
        Ends,
    }

    fn event(owners: usize) -> impl Strategy<Value = Event> {
        prop_oneof![3 => (0..owners).prop_map(Event::Push), 2 => Just(Event::Next), 2 => Just(Event::Ends)]
    }

    proptest! {
        #[test]
        fn nobody_starves(events in prop::collection::vec(event(5), 0..400), places in 1_usize..6) {
            let of = owners(5);
            let mut queue = Queue::new(bounds(40, 20));
            let (mut running, mut number) = (VecDeque::new(), 0);
            // How often each was passed over since it had its last turn, while it had nothing that ran.
            let mut passed = [0; 5];
            for event in events {
                match event {
                    Event::Push(owner) => {
                        number += 1;
                        queue.push(of[owner], number);
                    }
                    Event::Ends => {
                        if let Some(owner) = running.pop_front() {
                            queue.released(owner);
                        }
                    }
                    Event::Next if running.len() < places => {
                        let least = of.iter().filter(|o| queue.waiting_of(**o) > 0)
                            .map(|o| queue.running.get(o).copied().unwrap_or(0)).min();
                        let waiting: Vec<usize> = (0..5)
                            .filter(|o| queue.waiting_of(of[*o]) > 0 && !queue.running.contains_key(&of[*o]))
                            .collect();
                        let before = queue.len();
                        if let Some((owner, _)) = queue.next() {
                            running.push_back(owner);
                            // It is one of those that have least, so nobody is above its share while another waits below.
                            prop_assert_eq!(Some(queue.running[&owner] - 1), least);
                            prop_assert_eq!(queue.len(), before - 1);
                            for other in waiting {
                                passed[other] = if of[other] == owner { 0 } else { passed[other] + 1 };
                                prop_assert!(passed[other] < 5, "passed over {} times", passed[other]);
                            }
                        } else {
                            prop_assert_eq!(before, 0, "a place stays empty while somebody waits");
                        }
                    }
                    Event::Next => {}
                }
                prop_assert!(queue.len() <= 40 && queue.running() == running.len());
                prop_assert!(of.iter().all(|o| queue.waiting_of(*o) <= 20));
                for owner in 0..5 {
                    if queue.waiting_of(of[owner]) == 0 || queue.running.contains_key(&of[owner]) { passed[owner] = 0; }
                }
            }
        }

        #[test]
        fn each_owners_runs_keep_their_order(pushed in prop::collection::vec(0_usize..4, 0..100)) {
            let of = owners(4);
            let mut queue = Queue::new(bounds(1_000, 1_000));
            for (number, owner) in pushed.iter().enumerate() {
                queue.push(of[*owner], number);
            }
            let mut last: BTreeMap<Owner, usize> = BTreeMap::new();
            while let Some((owner, number)) = queue.next() {
                prop_assert!(last.insert(owner, number).is_none_or(|before| before < number));
                queue.released(owner);
            }
            prop_assert_eq!(queue.len(), 0);
        }
    }
}
