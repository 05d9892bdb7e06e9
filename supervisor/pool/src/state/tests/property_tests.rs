//! Property tests of the worker pool's state machine with random sequences of events: no worker is lost or
//! leased twice, the limit on running executions is never exceeded, and the workers of replaced zygotes end.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// A random action of the environment. The numbers in an action select one of the workers, requests or runs that exist
/// at that time.
#[derive(Clone, Debug)]
enum Action {
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

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (0_usize..3).prop_map(Action::Lease),
        2 => Just(Action::Session),
        6 => any::<usize>().prop_map(Action::Released),
        1 => any::<usize>().prop_map(Action::GivesUp),
        1 => any::<usize>().prop_map(Action::Dies),
        10 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(which, well)| Action::Forked(which, well)),
        3 => prop::bool::weighted(0.8).prop_map(Action::Started),
        1 => Just(Action::Crashed),
        1 => Just(Action::Gone),
        3 => (0_u64..20).prop_map(Action::Later),
        1 => (50_u64..200_000).prop_map(Action::Later),
    ]
}

/// A model of the pool's environment: it performs the effects that the state machine requests, and tracks all workers
/// and requests.
struct Model {
    state: State<Item, Item, Item>,
    bounds: PoolLimits,
    now: Instant,
    owners: Vec<Owner>,
    starting: Option<u32>,
    current: Option<u32>,
    started: BTreeSet<u32>,
    retired: BTreeSet<u32>,
    owed: Vec<(u32, ForkPurpose)>,
    /// All workers by id, with the number of the generation that they belong to.
    workers: BTreeMap<usize, (u32, Item)>,
    /// The ids of the workers that the state machine has given away: leased, handed over to a session, or ended.
    given: BTreeSet<usize>,
    requests: BTreeMap<usize, Item>,
    answered: BTreeSet<usize>,
    running: Vec<Owner>,
}

impl Model {
    fn new(bounds: PoolLimits) -> Self {
        let now = Instant::now();
        let owners = (0..3).map(|_| Principal::for_new_connection().owner()).collect();
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
        world.handle_event(PoolEvent::Begin);
        world
    }

    fn handle_event(&mut self, event: ItemEvent) {
        for effect in self.state.handle_event(event, self.now) {
            self.perform(effect);
        }
        self.check();
    }

    fn perform(&mut self, effect: ItemEffect) {
        match effect {
            PoolEffect::Lease { owner, to, worker } => {
                assert!(!worker.has_ended() && !to.has_ended());
                self.running.push(owner);
                self.record_handed_out(&worker);
                self.record_answered(&to);
            }
            PoolEffect::HandOver { to, worker } => {
                assert!(!to.has_ended());
                self.record_handed_out(&worker);
                self.record_answered(&to);
            }
            PoolEffect::End(worker) => self.record_handed_out(&worker),
            PoolEffect::QueueFull { to, .. } => self.record_answered(&to),
            PoolEffect::Refuse { leases, sessions, .. } => {
                leases.iter().chain(&sessions).for_each(|request| self.record_answered(request));
            }
            PoolEffect::StartZygote { generation, .. } => {
                assert_eq!(self.starting.replace(generation), None, "two zygotes start at a time");
                assert!(Some(generation) > self.current && !self.retired.contains(&generation));
            }
            PoolEffect::Retire { generation } => {
                assert_eq!(self.current.take(), Some(generation));
                assert!(self.retired.insert(generation), "{generation} retires twice");
            }
            PoolEffect::Fork { generation, for_runs, for_sessions, .. } => {
                let current = self.forking_generation().or(self.current);
                assert_eq!(current, Some(generation), "a zygote that is not the current one forks");
                self.owed.extend(std::iter::repeat_n((generation, ForkPurpose::Execution), for_runs));
                self.owed.extend(std::iter::repeat_n((generation, ForkPurpose::Session), for_sessions));
            }
            PoolEffect::Failed(_) | PoolEffect::NotReplaced(_) | PoolEffect::NoZygote(_) => {}
        }
    }

    /// Returns the number of the zygote that currently forks workers, or `None` if there is no such zygote. Each zygote
    /// that the pool starts has the next number (its generation).
    fn forking_generation(&self) -> Option<u32> {
        self.state.zygote.as_ref().map(|zygote| zygote.number).filter(|number| !self.retired.contains(number))
    }

    fn record_handed_out(&mut self, worker: &Item) {
        assert!(self.given.insert(worker.id), "{} is given twice", worker.id);
    }

    fn record_answered(&mut self, request: &Item) {
        assert!(self.answered.insert(request.id), "{} is answered twice", request.id);
    }

    fn check(&mut self) {
        self.current = self.forking_generation();
        let before = self.started.iter().copied().filter(|generation| Some(*generation) != self.current);
        assert!(before.eq(self.retired.iter().copied()), "a generation does not retire");
        let figures = self.state.stats();
        assert_eq!(figures.idle + self.given.len(), self.workers.len(), "a worker is lost");
        assert_eq!(figures.running, self.running.len());
        assert!(figures.running <= self.bounds.running_max);
        let owed = self.owed.iter().filter(|(generation, _)| Some(*generation) == self.current).count();
        assert_eq!(figures.forking, owed);
        assert!(owed <= self.bounds.pending_forks_max());
        let open = self.requests.values().filter(|request| !request.has_ended());
        let open = open.filter(|request| !self.answered.contains(&request.id)).count();
        assert_eq!(figures.waiting, open, "a request is lost");
    }

    fn request(&mut self) -> Item {
        let request = Item::new(self.requests.len());
        self.requests.insert(request.id, request.clone());
        request
    }

    fn act(&mut self, happens: Action) {
        match happens {
            Action::Lease(owner) => {
                let request = self.request();
                self.handle_event(PoolEvent::Lease(self.owners[owner], request));
            }
            Action::Session => {
                let request = self.request();
                self.handle_event(PoolEvent::Session(request));
            }
            Action::Released(which) if !self.running.is_empty() => {
                let owner = self.running.swap_remove(which % self.running.len());
                self.handle_event(PoolEvent::Released(owner, Duration::from_millis(3)));
            }
            Action::GivesUp(which) if !self.requests.is_empty() => {
                self.requests[&(which % self.requests.len())].ended.set(true);
                self.handle_event(PoolEvent::Woken);
            }
            Action::Dies(which) if !self.workers.is_empty() => {
                self.workers[&(which % self.workers.len())].1.ended.set(true);
                self.handle_event(PoolEvent::Woken);
            }
            Action::Forked(which, well) if !self.owed.is_empty() => self.forked(which, well),
            Action::Started(well) => match self.starting.take() {
                Some(generation) if well => {
                    self.started.insert(generation);
                    self.handle_event(PoolEvent::ZygoteStarted { generation });
                }
                Some(_) => self.handle_event(PoolEvent::ZygoteNotStarted(PoolError::zygote("no start"))),
                None => {}
            },
            Action::Crashed => {
                self.handle_event(PoolEvent::Crashed { generation: self.current.unwrap_or(1) });
            }
            Action::Gone => {
                let generation = self.current.unwrap_or(1);
                self.owed.retain(|(of, _)| *of != generation);
                self.handle_event(PoolEvent::ZygoteGone { generation, error: PoolError::zygote("it ended") });
            }
            Action::Later(ms) => {
                self.now += Duration::from_millis(ms);
                self.handle_event(PoolEvent::Woken);
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
        self.handle_event(PoolEvent::Forked { generation, purpose, worker });
    }

    /// Lets all outstanding starts and forks succeed and all executions end, until the pool has nothing left to do.
    fn settle(&mut self) {
        self.act(Action::Lease(0));
        for _ in 0..1_000 {
            let wake_at = self.state.wake_at(self.now);
            if self.starting.is_some() {
                self.act(Action::Started(true));
            } else if !self.owed.is_empty() {
                self.act(Action::Forked(0, true));
            } else if !self.running.is_empty() {
                self.act(Action::Released(0));
            } else if let Some(at) = wake_at {
                self.now = at;
                self.handle_event(PoolEvent::Woken);
            } else {
                return;
            }
        }
        panic!("the pool does not come to rest");
    }
}

/// The zygote that replaced another one ends, and leaves a worker of the first.
#[test]
fn a_worker_of_a_retired_zygote_ends_when_the_pool_is_unused() {
    let unused_max = Some(Duration::from_secs(50));
    let limits = PoolLimits { idle_min: 1, idle: 3, running_max: 2, recycle_after: 1, unused_max, ..LIMITS };
    let mut world = Model::new(limits);
    for action in [
        Action::Lease(0),
        Action::Lease(0),
        Action::Started(true),
        Action::Forked(0, true),
        Action::Later(50),
        Action::Forked(0, true),
        Action::Forked(0, true),
        Action::Started(true),
        Action::Gone,
    ] {
        world.act(action);
    }
    assert_eq!(world.state.stats().idle, 1, "control: the worker is there");
    world.settle();
    assert_eq!(world.state.stats().idle, 0);
}

proptest! {
    #[test]
    fn no_worker_or_request_is_lost_or_used_twice(
        what in prop::collection::vec(any_action(), 0..150),
        idle in 1_usize..4,
        running_max in 1_usize..4,
        recycle_after in 1_u32..12,
        on_demand in any::<bool>(),
    ) {
        let unused_max = on_demand.then_some(Duration::from_secs(50));
        let limits = PoolLimits { idle_min: 1, idle, running_max, recycle_after, unused_max, ..LIMITS };
        let mut world = Model::new(limits);
        for one in what {
            world.act(one);
        }
        world.settle();
        let figures = world.state.stats();
        prop_assert_eq!((figures.waiting, figures.running, figures.forking), (0, 0, 0));
        prop_assert_eq!(figures.idle, usize::from(!on_demand), "one worker stays idle after a while");
        // Only the current generation has idle workers.
        let held = world.workers.iter().filter(|(id, _)| !world.given.contains(id));
        let held: BTreeSet<Option<u32>> = held.map(|(_, (generation, _))| Some(*generation)).collect();
        prop_assert_eq!(held, if on_demand { BTreeSet::new() } else { BTreeSet::from([world.current]) });
        prop_assert!(!on_demand || world.current.is_none(), "an unused zygote stays");
    }
}
