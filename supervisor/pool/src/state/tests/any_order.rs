//! Whatever happens in whatever order: no worker is lost or given twice, never more run than may, and a retired generation
//! ends.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// What may happen in any order. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Happens {
    Lease(usize),
    Session,
    Released(usize),
    GivesUp(usize),
    Dies(usize),
    Forked(usize, bool),
    Started(bool),
    Crashed,
    Gone,
    Later(u64),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (0_usize..3).prop_map(Happens::Lease),
        2 => Just(Happens::Session),
        6 => any::<usize>().prop_map(Happens::Released),
        1 => any::<usize>().prop_map(Happens::GivesUp),
        1 => any::<usize>().prop_map(Happens::Dies),
        10 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(which, well)| Happens::Forked(which, well)),
        3 => prop::bool::weighted(0.8).prop_map(Happens::Started),
        1 => Just(Happens::Crashed),
        1 => Just(Happens::Gone),
        3 => (0_u64..20).prop_map(Happens::Later),
        1 => (50_u64..200_000).prop_map(Happens::Later),
    ]
}

/// Everything around a state: it does what the effects say, and notes what became of whom.
struct World {
    state: State<Item, Item, Item>,
    bounds: Bounds,
    now: Instant,
    owners: Vec<Owner>,
    starting: Option<u32>,
    current: Option<u32>,
    started: BTreeSet<u32>,
    retired: BTreeSet<u32>,
    owed: Vec<(u32, Purpose)>,
    /// Each with its generation.
    workers: BTreeMap<usize, (u32, Item)>,
    /// Workers that the state does not hold any more.
    given: BTreeSet<usize>,
    requests: BTreeMap<usize, Item>,
    answered: BTreeSet<usize>,
    running: Vec<Owner>,
}

impl World {
    fn new(bounds: Bounds) -> Self {
        let now = Instant::now();
        let owners = (0..3).map(|_| Principal::of_connection().owner()).collect();
        let mut world = Self {
            state: State::new(bounds, now),
            bounds,
            now,
            owners,
            starting: None,
            current: None,
            started: BTreeSet::new(),
            retired: BTreeSet::new(),
            owed: Vec::new(),
            workers: BTreeMap::new(),
            given: BTreeSet::new(),
            requests: BTreeMap::new(),
            answered: BTreeSet::new(),
            running: Vec::new(),
        };
        world.hear(Event::Begin);
        world
    }

    fn hear(&mut self, event: ItemEvent) {
        for effect in self.state.on(event, self.now) {
            self.perform(effect);
        }
        self.check();
    }

    fn perform(&mut self, effect: ItemEffect) {
        match effect {
            Effect::Lease { owner, to, worker } => {
                assert!(!worker.has_ended() && !to.has_ended());
                self.running.push(owner);
                self.give(&worker);
                self.answer(&to);
            }
            Effect::HandOver { to, worker } => {
                assert!(!to.has_ended());
                self.give(&worker);
                self.answer(&to);
            }
            Effect::End(worker) => self.give(&worker),
            Effect::QueueFull { to, .. } => self.answer(&to),
            Effect::Refuse { leases, sessions, .. } => {
                leases.iter().chain(&sessions).for_each(|request| self.answer(request));
            }
            Effect::StartZygote { generation, .. } => {
                assert_eq!(self.starting.replace(generation), None, "two zygotes start at a time");
                assert!(Some(generation) > self.current && !self.retired.contains(&generation));
            }
            Effect::Retire { generation } => {
                assert_eq!(self.current.take(), Some(generation));
                assert!(self.retired.insert(generation), "{generation} retires twice");
            }
            Effect::Fork { generation, for_runs, for_sessions, .. } => {
                let current = self.forks_now().or(self.current);
                assert_eq!(current, Some(generation), "a zygote that is not the current one forks");
                self.owed.extend(std::iter::repeat_n((generation, Purpose::Execution), for_runs));
                self.owed.extend(std::iter::repeat_n((generation, Purpose::Session), for_sessions));
            }
            Effect::Failed(_) | Effect::NotReplaced(_) | Effect::NoZygote(_) => {}
        }
    }

    /// The zygote that the event just heard has brought, before the one before it retires.
    fn forks_now(&self) -> Option<u32> {
        self.state.zygote.as_ref().map(|zygote| zygote.number).filter(|number| !self.retired.contains(number))
    }

    fn give(&mut self, worker: &Item) {
        assert!(self.given.insert(worker.id), "{} is given twice", worker.id);
    }

    fn answer(&mut self, request: &Item) {
        assert!(self.answered.insert(request.id), "{} is answered twice", request.id);
    }

    fn check(&mut self) {
        self.current = self.forks_now();
        let before = self.started.iter().copied().filter(|generation| Some(*generation) != self.current);
        assert!(before.eq(self.retired.iter().copied()), "a generation does not retire");
        let figures = self.state.figures();
        assert_eq!(figures.idle + self.given.len(), self.workers.len(), "a worker is lost");
        assert_eq!(figures.running, self.running.len());
        assert!(figures.running <= self.bounds.running_max);
        let owed = self.owed.iter().filter(|(generation, _)| Some(*generation) == self.current).count();
        assert_eq!(figures.forking, owed);
        assert!(owed <= self.bounds.forks_max());
        let open = self.requests.values().filter(|request| !request.has_ended());
        let open = open.filter(|request| !self.answered.contains(&request.id)).count();
        assert_eq!(figures.waiting, open, "a request is lost");
    }

    fn request(&mut self) -> Item {
        let request = Item::new(self.requests.len());
        self.requests.insert(request.id, request.clone());
        request
    }

    fn happen(&mut self, happens: Happens) {
        match happens {
            Happens::Lease(owner) => {
                let request = self.request();
                self.hear(Event::Lease(self.owners[owner], request));
            }
            Happens::Session => {
                let request = self.request();
                self.hear(Event::Session(request));
            }
            Happens::Released(which) if !self.running.is_empty() => {
                let owner = self.running.swap_remove(which % self.running.len());
                self.hear(Event::Released(owner, Duration::from_millis(3)));
            }
            Happens::GivesUp(which) if !self.requests.is_empty() => {
                self.requests[&(which % self.requests.len())].ended.set(true);
                self.hear(Event::Woken);
            }
            Happens::Dies(which) if !self.workers.is_empty() => {
                self.workers[&(which % self.workers.len())].1.ended.set(true);
                self.hear(Event::Woken);
            }
            Happens::Forked(which, well) if !self.owed.is_empty() => self.forked(which, well),
            Happens::Started(well) => match self.starting.take() {
                Some(generation) if well => {
                    self.started.insert(generation);
                    self.hear(Event::ZygoteStarted { generation });
                }
                Some(_) => self.hear(Event::ZygoteNotStarted(PoolError::zygote("no start"))),
                None => {}
            },
            Happens::Crashed => {
                self.hear(Event::Crashed { generation: self.current.unwrap_or(1) });
            }
            Happens::Gone => {
                let generation = self.current.unwrap_or(1);
                self.owed.retain(|(of, _)| *of != generation);
                self.hear(Event::ZygoteGone { generation, error: PoolError::zygote("it ended") });
            }
            Happens::Later(ms) => {
                self.now += Duration::from_millis(ms);
                self.hear(Event::Woken);
            }
            _ => {}
        }
    }

    fn forked(&mut self, which: usize, well: bool) {
        let (generation, purpose) = self.owed.remove(which % self.owed.len());
        let id = self.workers.len();
        let worker = if well {
            let worker = Item::new(id);
            self.workers.insert(id, (generation, worker.clone()));
            Ok(worker)
        } else {
            Err(PoolError::zygote("no fork"))
        };
        self.hear(Event::Forked { generation, purpose, worker });
    }

    /// From now on everything goes well, every run ends, and nobody asks for more.
    fn come_to_rest(&mut self) {
        self.happen(Happens::Lease(0));
        for _ in 0..1_000 {
            let wake_at = self.state.wake_at(self.now);
            if self.starting.is_some() {
                self.happen(Happens::Started(true));
            } else if !self.owed.is_empty() {
                self.happen(Happens::Forked(0, true));
            } else if !self.running.is_empty() {
                self.happen(Happens::Released(0));
            } else if let Some(at) = wake_at {
                self.now = at;
                self.hear(Event::Woken);
            } else {
                return;
            }
        }
        panic!("the pool does not come to rest");
    }
}

proptest! {
    #[test]
    fn nothing_is_lost_or_given_twice(
        what in prop::collection::vec(happens(), 0..150),
        idle in 1_usize..4,
        running_max in 1_usize..4,
        recycle_after in 1_u32..12,
    ) {
        let mut world = World::new(Bounds { idle, running_max, recycle_after, ..BOUNDS });
        for one in what {
            world.happen(one);
        }
        world.come_to_rest();
        let figures = world.state.figures();
        prop_assert_eq!((figures.waiting, figures.running, figures.forking), (0, 0, 0));
        // Whoever waited for a fork may have had an earlier worker: then theirs is left over, and serves the next.
        prop_assert!((idle..=idle.max(running_max)).contains(&figures.idle), "{} are idle", figures.idle);
        // No generation but the current one holds anything.
        let held = world.workers.iter().filter(|(id, _)| !world.given.contains(id));
        let held: BTreeSet<Option<u32>> = held.map(|(_, (generation, _))| Some(*generation)).collect();
        prop_assert_eq!(held, BTreeSet::from([world.current]));
    }
}
