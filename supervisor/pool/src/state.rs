//! What a pool has and what it needs: generations of zygotes, idle workers, and those who wait.
//!
//! There is no I/O here and no clock. Each [`Event`] comes with its time, and what is to be done about it is told in
//! [`Effect`]s. Workers and requests are moved through, so that none can be given twice.

mod generation;
mod messages;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use lockhouse_base::principal::Owner;
use tokio::time::Instant;

use super::PoolError;
use super::figures::Figures;
use super::launch::Purpose;
use super::queue::Queue;
use generation::Generation;
use messages::SESSION_FORKS_MAX;
pub(super) use messages::{Bounds, Effect, Ends, Event};

/// Without other work, idle workers are refilled so long after the last request.
const QUIET: Duration = Duration::from_millis(5);

/// After so many failures in a row those who wait are told; the next request tries again.
const FAILURES_MAX: u32 = 3;

/// What whoever finds the queue full is told to wait, at least and at most.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

struct Idle<W> {
    generation: u32,
    worker: W,
}

/// The one owner of idle workers and of requests.
pub(super) struct State<W, L, S> {
    bounds: Bounds,
    /// The zygote that forks now; those before it retire.
    zygote: Option<Generation>,
    /// The number of the zygote that was started last; 0 before the first.
    last_generation: u32,
    starting: bool,
    /// In the order of their arrival.
    idle: Vec<Idle<W>>,
    waiting: Queue<L>,
    /// How long a worker is held, of late.
    held: Duration,
    /// Sessions that begin, as many as the engine permits. Their workers are forked for them alone.
    sessions: VecDeque<S>,
    /// In a row.
    failures: u32,
    last_request: Instant,
}

type Effects<W, L, S> = Vec<Effect<W, L, S>>;

impl<W: Ends, L: Ends, S: Ends> State<W, L, S> {
    pub(super) fn new(bounds: Bounds, now: Instant) -> Self {
        Self {
            bounds,
            zygote: None,
            last_generation: 0,
            starting: false,
            idle: Vec::new(),
            waiting: Queue::new(bounds.queue),
            held: Duration::ZERO,
            sessions: VecDeque::new(),
            failures: 0,
            last_request: now,
        }
    }

    /// Hears what happened, and tells what is to be done, in this order.
    pub(super) fn on(&mut self, event: Event<W, L, S>, now: Instant) -> Effects<W, L, S> {
        let mut effects = Vec::new();
        self.hear(event, now, &mut effects);
        self.waiting.retain(|request| !request.has_ended());
        self.sessions.retain(|request| !request.has_ended());
        self.end_idle(|idle| idle.worker.has_ended(), &mut effects);
        self.lease(&mut effects);
        self.make_room(&mut effects);
        self.refill(now, &mut effects);
        effects
    }

    /// When there is something to do although nothing happens.
    pub(super) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let is_short = self.ready() < self.bounds.idle && self.failures < FAILURES_MAX;
        let quiet_at = is_short.then(|| self.last_request + QUIET);
        let serving = self.zygote.as_ref().filter(|zygote| zygote.has_served(self.idle_of(zygote.number)));
        let old_at = serving.map(|zygote| zygote.started + self.bounds.recycle_age);
        quiet_at.into_iter().chain(old_at).filter(|at| *at > now).min()
    }

    pub(super) fn figures(&self) -> Figures {
        Figures {
            places: self.bounds.running_max,
            idle: self.idle.len(),
            forking: self.zygote.as_ref().map_or(0, Generation::owed),
            running: self.waiting.running(),
            waiting: self.waiting.len() + self.sessions.len(),
            zygotes: self.last_generation,
            zygote_age_s: None,
        }
    }

    /// Since when the zygote that forks now does.
    pub(super) fn zygote_started(&self) -> Option<Instant> {
        self.zygote.as_ref().map(|zygote| zygote.started)
    }

    fn hear(&mut self, event: Event<W, L, S>, now: Instant, effects: &mut Effects<W, L, S>) {
        match event {
            Event::Begin => self.start_zygote(effects),
            Event::Lease(owner, request) => self.queue(owner, request, now, effects),
            Event::Session(request) => {
                self.sessions.push_back(request);
                self.try_again(now);
            }
            Event::Released(owner, held) => {
                self.waiting.released(owner);
                self.held = (self.held * 7 + held) / 8;
            }
            Event::ZygoteStarted { generation } => {
                self.starting = false;
                let before = self.zygote.replace(Generation::new(generation, now));
                effects.extend(before.map(|before| Effect::Retire { generation: before.number }));
            }
            Event::ZygoteNotStarted(error) => self.not_started(error, now, effects),
            Event::Forked { generation, purpose, worker } => {
                self.forked(generation, purpose, worker, effects);
            }
            Event::Crashed { generation } => {
                if let Some(zygote) = self.current(generation) {
                    zygote.crashed = true;
                }
            }
            Event::ZygoteGone { generation, error } => {
                // One that retired was of no use any more.
                if self.current(generation).is_some() {
                    self.zygote = None;
                    effects.push(Effect::Retire { generation });
                    self.end_idle(|idle| idle.generation == generation, effects);
                    self.failed(error, effects);
                }
            }
            Event::Woken => {}
        }
    }

    fn queue(&mut self, owner: Owner, request: L, now: Instant, effects: &mut Effects<W, L, S>) {
        // Whoever gave up has no place in the queue.
        self.waiting.retain(|request| !request.has_ended());
        if let Some(to) = self.waiting.push(owner, request) {
            let (waiting, retry_after) = (self.waiting.len(), self.retry_after());
            effects.push(Effect::QueueFull { to, waiting, retry_after });
        }
        self.try_again(now);
    }

    /// Somebody asks: after failures that is a reason to try once more.
    fn try_again(&mut self, now: Instant) {
        self.last_request = now;
        self.failures = self.failures.min(FAILURES_MAX - 1);
    }

    /// When there will be room, as far as recent runs tell.
    fn retry_after(&self) -> Duration {
        let turns = self.waiting.len() / self.bounds.running_max + 1;
        (self.held * turns as u32).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }

    fn not_started(&mut self, error: PoolError, now: Instant, effects: &mut Effects<W, L, S>) {
        self.starting = false;
        match &mut self.zygote {
            Some(zygote) => {
                zygote.serve_on(now);
                effects.push(Effect::NotReplaced(error));
            }
            None => {
                // What it says of the host will not change by asking again.
                self.failures = FAILURES_MAX;
                self.refuse_all(error.to_string(), effects);
                effects.push(Effect::NoZygote(error));
            }
        }
    }

    fn forked(
        &mut self,
        generation: u32,
        purpose: Purpose,
        worker: Result<W, PoolError>,
        effects: &mut Effects<W, L, S>,
    ) {
        let current = self.current(generation).map(|zygote| zygote.answered(purpose));
        match (worker, purpose) {
            (Ok(worker), Purpose::Execution) => {
                self.failures = 0;
                self.idle.push(Idle { generation, worker });
            }
            (Ok(worker), Purpose::Session) => {
                self.failures = 0;
                self.sessions.retain(|request| !request.has_ended());
                effects.push(match self.sessions.pop_front() {
                    Some(to) => Effect::HandOver { to, worker },
                    None => Effect::End(worker),
                });
            }
            (Err(error), _) if current.is_some() => self.failed(error, effects),
            // The end of its zygote has been counted.
            (Err(_), _) => {}
        }
    }

    /// Something went wrong that may go right the next time.
    fn failed(&mut self, error: PoolError, effects: &mut Effects<W, L, S>) {
        self.failures += 1;
        let reason = error.to_string();
        effects.push(Effect::Failed(error));
        if self.failures >= FAILURES_MAX {
            self.refuse_all(reason, effects);
        }
    }

    fn refuse_all(&mut self, reason: String, effects: &mut Effects<W, L, S>) {
        let (leases, sessions) = (self.waiting.drain().collect(), self.sessions.drain(..).collect());
        effects.push(Effect::Refuse { leases, sessions, reason });
    }

    /// Gives idle workers to those who wait, as far as there are places.
    fn lease(&mut self, effects: &mut Effects<W, L, S>) {
        while self.waiting.running() < self.bounds.running_max
            && !self.waiting.is_empty()
            && let Some(Idle { generation, worker }) = self.idle.pop()
        {
            let Some((owner, to)) = self.waiting.next() else {
                return self.idle.push(Idle { generation, worker });
            };
            effects.push(Effect::Lease { owner, to, worker });
        }
    }

    /// Workers of a retired zygote make room, and with the last of them it ends. One may have come after newer ones.
    fn make_room(&mut self, effects: &mut Effects<W, L, S>) {
        let current = self.zygote.as_ref().map(|zygote| zygote.number);
        while self.idle.len() > self.bounds.idle
            && let Some(at) = self.idle.iter().position(|idle| Some(idle.generation) != current)
        {
            effects.push(Effect::End(self.idle.remove(at).worker));
        }
    }

    /// Asks for what is missing.
    fn refill(&mut self, now: Instant, effects: &mut Effects<W, L, S>) {
        if self.failures >= FAILURES_MAX {
            return;
        }
        let for_runs = self.wanted(now).saturating_sub(self.ready());
        let owed = self.zygote.as_ref().map_or(0, |zygote| zygote.owed_to_sessions);
        let for_sessions = self.sessions.len().min(SESSION_FORKS_MAX).saturating_sub(owed);
        let must_start = match &self.zygote {
            Some(zygote) => zygote.is_worn(self.idle_of(zygote.number), now, &self.bounds),
            None => for_runs > 0 || for_sessions > 0 || self.failures > 0,
        };
        if must_start {
            self.start_zygote(effects);
        }
        // Under load there is no time to warm up: whoever waits would wait for that too.
        let warm = self.waiting.is_empty() && self.waiting.running() == 0;
        if let Some(zygote) = &mut self.zygote
            && for_runs + for_sessions > 0
        {
            zygote.asked(for_runs, for_sessions);
            effects.push(Effect::Fork { generation: zygote.number, warm, for_runs, for_sessions });
        }
    }

    /// Workers that there should be, idle or on their way. A fork beside a run costs that run time, so those ahead of need
    /// wait for a quiet moment.
    fn wanted(&self, now: Instant) -> usize {
        let free = self.bounds.running_max - self.waiting.running();
        let is_quiet = now.duration_since(self.last_request) >= QUIET;
        let ahead = if is_quiet { self.bounds.idle } else { 0 };
        self.waiting.len().min(free).max(ahead)
    }

    /// A retiring zygote serves on until the new one is ready.
    fn start_zygote(&mut self, effects: &mut Effects<W, L, S>) {
        if std::mem::replace(&mut self.starting, true) {
            return;
        }
        let reason = match (self.last_generation, &self.zygote) {
            (0, _) => "first",
            (_, None) => "ended",
            (_, Some(zygote)) if zygote.crashed => "crashed",
            (_, Some(_)) => "worn",
        };
        self.last_generation += 1;
        effects.push(Effect::StartZygote { generation: self.last_generation, reason });
    }

    fn current(&mut self, generation: u32) -> Option<&mut Generation> {
        self.zygote.as_mut().filter(|zygote| zygote.number == generation)
    }

    fn idle_of(&self, generation: u32) -> usize {
        self.idle.iter().filter(|idle| idle.generation == generation).count()
    }

    /// Workers of the current zygote that are idle, or on their way to be.
    fn ready(&self) -> usize {
        self.zygote.as_ref().map_or(0, |zygote| zygote.owed_to_runs + self.idle_of(zygote.number))
    }

    fn end_idle(&mut self, ends: impl Fn(&Idle<W>) -> bool, effects: &mut Effects<W, L, S>) {
        let ended = self.idle.extract_if(.., |idle| ends(idle));
        effects.extend(ended.map(|idle| Effect::End(idle.worker)));
    }
}
