mod property_tests;

use std::cell::Cell;
use std::rc::Rc;

use lockhouse_base::principal::Principal;

use super::super::fair_queue::QueueLimits;
use super::*;

const LIMITS: PoolLimits = PoolLimits {
    idle_min: 2,
    idle: 2,
    running_max: 3,
    queue: QueueLimits { all: 4, of_one: 3 },
    recycle_after: 8,
    recycle_age: Duration::from_secs(60),
    unused_max: None,
};

/// A simulated worker or request of the pool.
#[derive(Clone, Debug)]
struct Item {
    id: usize,
    ended: Rc<Cell<bool>>,
}

impl Item {
    fn new(id: usize) -> Self {
        Self { id, ended: Rc::default() }
    }
}

impl HasEnded for Item {
    fn has_ended(&self) -> bool {
        self.ended.get()
    }
}

type ItemEvent = PoolEvent<Item, Item, Item>;
type ItemEffect = PoolEffect<Item, Item, Item>;

fn effect_text(effect: &ItemEffect) -> String {
    match effect {
        PoolEffect::Lease { to, worker, .. } => format!("lease {} to {}", worker.id, to.id),
        PoolEffect::HandOver { to, worker } => format!("hand {} over to {}", worker.id, to.id),
        PoolEffect::End(worker) => format!("end {}", worker.id),
        PoolEffect::QueueFull { to, waiting, retry_after } => {
            format!("queue full for {}: {waiting} wait, {retry_after:?}", to.id)
        }
        PoolEffect::Refuse { leases, sessions, reason } => {
            format!("refuse {} and {}: {reason}", leases.len(), sessions.len())
        }
        PoolEffect::StartZygote { generation, reason } => format!("start {generation}, {reason}"),
        PoolEffect::Retire { generation } => format!("retire {generation}"),
        PoolEffect::Fork { generation, warm, for_runs, for_sessions } => {
            let warm = if *warm { "warm" } else { "cold" };
            format!("{generation} forks {for_runs}+{for_sessions} {warm}")
        }
        PoolEffect::Failed(error) => format!("failed: {error}"),
        PoolEffect::NotReplaced(error) => format!("not replaced: {error}"),
        PoolEffect::NoZygote(error) => format!("no zygote: {error}"),
    }
}

/// A state machine under test, with a simulated clock in milliseconds.
struct Script {
    state: State<Item, Item, Item>,
    begun: Instant,
    owner: Owner,
}

impl Script {
    fn new(bounds: PoolLimits) -> Self {
        let begun = Instant::now();
        let mut script =
            Self { state: State::new(bounds, begun), begun, owner: Principal::for_new_connection().owner() };
        script.at(0, PoolEvent::Begin, &["start 1, first"]);
        script
    }

    /// Returns a script whose first zygote has started and has two idle workers, 101 and 102.
    fn ready(bounds: PoolLimits) -> Self {
        let mut script = Self::new(bounds);
        script.at(100, PoolEvent::ZygoteStarted { generation: 1 }, &["1 forks 2+0 warm"]);
        script.at(110, worker(1, 101), &[]);
        script.at(110, worker(1, 102), &[]);
        script
    }

    fn at(&mut self, ms: u64, event: ItemEvent, expected: &[&str]) {
        let what = format!("{event:?} at {ms} ms");
        let effects = self.state.handle_event(event, self.begun + Duration::from_millis(ms));
        assert_eq!(effects.iter().map(effect_text).collect::<Vec<_>>(), expected, "{what}");
    }

    fn lease(&self, id: usize) -> ItemEvent {
        PoolEvent::Lease(self.owner, Item::new(id))
    }

    fn released(&self, seconds: u64) -> ItemEvent {
        PoolEvent::Released(self.owner, Duration::from_secs(seconds))
    }
}

fn worker(generation: u32, id: usize) -> ItemEvent {
    PoolEvent::Forked { generation, purpose: ForkPurpose::Execution, worker: Ok(Item::new(id)) }
}

fn session_worker(generation: u32, id: usize) -> ItemEvent {
    PoolEvent::Forked { generation, purpose: ForkPurpose::Session, worker: Ok(Item::new(id)) }
}

fn no_worker(generation: u32) -> ItemEvent {
    let worker = Err(PoolError::zygote("no fork"));
    PoolEvent::Forked { generation, purpose: ForkPurpose::Execution, worker }
}

#[test]
fn an_idle_worker_is_leased_at_once_and_replaced_in_a_quiet_moment() {
    let mut script = Script::ready(LIMITS);
    let lease = script.lease(1);
    script.at(200, lease, &["lease 102 to 1"]);
    let at = |ms| script.begun + Duration::from_millis(ms);
    assert_eq!(script.state.wake_at(at(200)), Some(at(205)));
    script.at(204, PoolEvent::Woken, &[]);
    script.at(205, PoolEvent::Woken, &["1 forks 1+0 cold"]);
}

#[test]
fn each_waiting_request_gets_a_fork_up_to_the_limit() {
    let mut script = Script::new(LIMITS);
    for id in 1..=3 {
        let lease = script.lease(id);
        script.at(100, lease, &[]);
    }
    let lease = script.lease(4);
    script.at(100, lease, &["queue full for 4: 3 wait, 1s"]);
    script.at(101, PoolEvent::ZygoteStarted { generation: 1 }, &["1 forks 3+0 cold"]);
    script.at(102, worker(1, 101), &["lease 101 to 1"]);
    script.at(103, worker(1, 102), &["lease 102 to 2"]);
    script.at(104, worker(1, 103), &["lease 103 to 3"]);
    let lease = script.lease(5);
    script.at(104, lease, &[]);
    let released = script.released(1);
    script.at(104, released, &["1 forks 1+0 cold"]);
}

#[test]
fn more_idle_workers_are_kept_while_requests_find_none() {
    let mut script = Script::new(PoolLimits { idle_min: 1, idle: 3, ..LIMITS });
    let at = |script: &Script, ms| script.begun + Duration::from_millis(ms);
    script.at(100, PoolEvent::ZygoteStarted { generation: 1 }, &["1 forks 1+0 warm"]);
    script.at(110, worker(1, 101), &[]);
    let [first, second] = [1, 2].map(|id| script.lease(id));
    script.at(200, first, &["lease 101 to 1"]);
    script.at(201, second, &["1 forks 1+0 cold"]);
    script.at(202, worker(1, 102), &["lease 102 to 2"]);
    let released = [(); 2].map(|()| script.released(0));
    released.into_iter().for_each(|released| script.at(203, released, &[]));
    script.at(206, PoolEvent::Woken, &["1 forks 2+0 warm"]);
    script.at(210, worker(1, 103), &[]);
    script.at(210, worker(1, 104), &[]);
    assert_eq!(script.state.wake_at(at(&script, 211)), Some(at(&script, 60_100)), "the zygote is old then");
    script.at(60_100, PoolEvent::Woken, &["start 2, worn"]);
    script.at(
        60_110,
        PoolEvent::ZygoteNotStarted(PoolError::zygote("none")),
        &["not replaced: the zygote failed: none"],
    );
    script.at(60_201, PoolEvent::Woken, &["end 103"]);
    assert_eq!(script.state.idle.len(), 1);
}

#[test]
fn a_session_has_a_worker_of_its_own() {
    let mut script = Script::ready(LIMITS);
    script.at(200, PoolEvent::Session(Item::new(1)), &["1 forks 0+1 warm"]);
    script.at(201, session_worker(1, 103), &["hand 103 over to 1"]);
    let (gone, stays) = (Item::new(2), Item::new(3));
    script.at(202, PoolEvent::Session(gone.clone()), &["1 forks 0+1 warm"]);
    script.at(202, PoolEvent::Session(stays), &["1 forks 0+1 warm"]);
    gone.ended.set(true);
    script.at(203, session_worker(1, 104), &["hand 104 over to 3"]);
    script.at(204, session_worker(1, 105), &["end 105"]);
}

#[test]
fn a_worn_zygote_serves_until_its_successor_is_ready() {
    let mut script = Script::ready(PoolLimits { recycle_after: 3, ..LIMITS });
    let lease = script.lease(1);
    script.at(200, lease, &["lease 102 to 1"]);
    script.at(205, PoolEvent::Woken, &["1 forks 1+0 cold"]);
    script.at(206, worker(1, 103), &["start 2, worn"]);
    script.at(220, PoolEvent::ZygoteStarted { generation: 2 }, &["retire 1", "2 forks 2+0 cold"]);
    script.at(221, worker(2, 201), &["end 101"]);
    script.at(222, worker(2, 202), &["end 103"]);
    // Reports of a retired zygote have no effect.
    script.at(223, PoolEvent::Crashed { generation: 1 }, &[]);
    script.at(223, PoolEvent::ZygoteGone { generation: 1, error: PoolError::zygote("late") }, &[]);
    script.at(224, no_worker(1), &[]);
}

#[test]
fn an_old_zygote_is_replaced_if_it_has_served() {
    let mut script = Script::ready(LIMITS);
    let at = |script: &Script, ms| script.begun + Duration::from_millis(ms);
    assert_eq!(script.state.wake_at(at(&script, 200)), None);
    script.at(70_000, PoolEvent::Woken, &[]);
    let lease = script.lease(1);
    script.at(70_000, lease, &["lease 102 to 1", "start 2, worn"]);
    let unreplaced = PoolEvent::ZygoteNotStarted(PoolError::zygote("none"));
    script.at(70_001, unreplaced, &["not replaced: the zygote failed: none"]);
    script.at(70_005, PoolEvent::Woken, &["1 forks 1+0 cold"]);
    script.at(70_006, worker(1, 103), &[]);
}

#[test]
fn a_crash_of_a_worker_has_the_zygote_replaced() {
    let mut script = Script::ready(LIMITS);
    script.at(200, PoolEvent::Crashed { generation: 1 }, &["start 2, crashed"]);
    script.at(201, PoolEvent::Crashed { generation: 1 }, &[]);
    script.at(210, PoolEvent::ZygoteStarted { generation: 2 }, &["retire 1", "2 forks 2+0 warm"]);
}

#[test]
fn a_dead_zygote_ends_its_idle_workers() {
    let mut script = Script::ready(LIMITS);
    let gone = PoolEvent::ZygoteGone { generation: 1, error: PoolError::zygote("it ended") };
    let failure = "failed: the zygote failed: it ended";
    script.at(200, gone, &["retire 1", "end 101", "end 102", failure, "start 2, ended"]);
}

#[test]
fn after_three_failures_waiting_requests_fail_and_the_next_one_retries() {
    let mut script = Script::new(LIMITS);
    script.at(1, PoolEvent::ZygoteStarted { generation: 1 }, &[]);
    let lease = script.lease(1);
    let failed = "failed: the zygote failed: no fork";
    script.at(1, lease, &["1 forks 1+0 cold"]);
    script.at(2, no_worker(1), &[failed, "1 forks 1+0 cold"]);
    script.at(2, no_worker(1), &[failed, "1 forks 1+0 cold"]);
    script.at(3, no_worker(1), &[failed, "refuse 1 and 0: the zygote failed: no fork"]);
    script.at(49, PoolEvent::Woken, &[]);
    let lease = script.lease(2);
    script.at(50, lease, &["1 forks 1+0 cold"]);
    script.at(51, worker(1, 101), &["lease 101 to 2"]);
}

#[test]
fn a_zygote_start_that_failed_is_retried_on_the_next_request() {
    let mut script = Script::new(LIMITS);
    script.at(1, PoolEvent::Session(Item::new(1)), &[]);
    let refused = PoolEvent::ZygoteNotStarted(PoolError::Refused("no seccomp".into()));
    script.at(2, refused, &["refuse 0 and 1: no seccomp", "no zygote: no seccomp"]);
    script.at(500, PoolEvent::Woken, &[]);
    let lease = script.lease(2);
    script.at(501, lease, &["start 2, ended"]);
}

#[test]
fn a_zygote_on_demand_starts_with_the_first_request_and_ends_when_unused() {
    let limits = PoolLimits { idle_min: 1, idle: 1, unused_max: Some(Duration::from_secs(30)), ..LIMITS };
    let begun = Instant::now();
    let owner = Principal::for_new_connection().owner();
    let mut script = Script { state: State::new(limits, begun), begun, owner };
    let at = |ms| begun + Duration::from_millis(ms);
    script.at(0, PoolEvent::Begin, &[]);
    assert_eq!(script.state.wake_at(at(0)), None);
    script.at(1_000, PoolEvent::Woken, &[]);
    let lease = script.lease(1);
    script.at(2_000, lease, &["start 1, first"]);
    script.at(2_500, PoolEvent::ZygoteStarted { generation: 1 }, &["1 forks 1+0 cold"]);
    script.at(2_501, worker(1, 101), &["lease 101 to 1", "1 forks 1+0 cold"]);
    script.at(2_502, worker(1, 102), &[]);
    // A leased worker keeps the zygote.
    script.at(40_000, PoolEvent::Woken, &[]);
    let released = script.released(38);
    script.at(41_000, released, &[]);
    assert_eq!(script.state.wake_at(at(41_000)), Some(at(62_500)), "the zygote is old then");
    script.at(70_999, PoolEvent::Woken, &["start 2, worn"]);
    script.at(71_000, PoolEvent::ZygoteStarted { generation: 2 }, &["retire 1", "2 forks 1+0 warm"]);
    script.at(71_001, worker(2, 201), &["end 102"]);
    assert_eq!(script.state.wake_at(at(71_001)), Some(at(101_000)));
    script.at(101_000, PoolEvent::Woken, &["retire 2", "end 201"]);
    assert_eq!(script.state.wake_at(at(101_000)), None);
    let lease = script.lease(2);
    script.at(110_000, lease, &["start 3, ended"]);
}

#[test]
fn a_dead_worker_is_never_leased_and_a_request_given_up_never_answered() {
    let mut script = Script::ready(LIMITS);
    let dead = Item::new(103);
    script.state.idle.push(Idle { generation: 1, worker: dead.clone() });
    dead.ended.set(true);
    let lease = script.lease(1);
    script.at(200, lease, &["end 103", "lease 102 to 1"]);
    let gave_up = Item::new(2);
    gave_up.ended.set(true);
    script.at(200, PoolEvent::Lease(script.owner, gave_up), &[]);
}
