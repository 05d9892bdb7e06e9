//! The state machine of a pool: generations of zygotes, idle workers, and waiting requests.
//!
//! It has no I/O and no clock. Each [`Event`] comes with its time, and results in [`Effect`]s. Workers and requests
//! are moved through it, so that none can be used twice.

mod events;
mod generation;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use lockhouse_base::principal::Owner;
use tokio::time::Instant;

use super::PoolError;
use super::fair_queue::FairQueue;
use super::launch_config::ForkPurpose;
use super::stats::PoolStats;
use events::SESSION_FORKS_MAX;
pub(super) use events::{Effect, Event, HasEnded, PoolLimits};
use generation::Generation;

/// How long after the last request the pool forks new idle workers, unless requests wait for one.
const QUIET: Duration = Duration::from_millis(5);

/// After this many consecutive failures waiting requests are refused; the next request tries again.
const FAILURES_MAX: u32 = 3;

/// Shortest retry time that is reported when the queue is full.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
/// Longest retry time that is reported when the queue is full.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

struct Idle<W> {
    generation: u32,
    worker: W,
}

/// The state of a pool. Owns all idle workers and waiting requests.
pub(super) struct State<W, L, S> {
    bounds: PoolLimits,
    /// The zygote that serves forks; `None` if none runs. Earlier ones retire.
    zygote: Option<Generation>,
    /// Number of the zygote that was started last; 0 before the first.
    last_generation: u32,
    starting: bool,
    /// Idle workers in the order of their arrival.
    idle: Vec<Idle<W>>,
    waiting: FairQueue<L>,
    /// The moving average of how long a lease of a worker is held.
    average_hold_time: Duration,
    /// Sessions that wait for a worker, which is forked for them. The engine limits their number.
    sessions: VecDeque<S>,
    /// Number of consecutive failures to provide a worker.
    failures: u32,
    last_request: Instant,
}

type Effects<W, L, S> = Vec<Effect<W, L, S>>;

impl<W: HasEnded, L: HasEnded, S: HasEnded> State<W, L, S> {
    pub(super) fn new(bounds: PoolLimits, now: Instant) -> Self {
        Self {
            bounds,
            zygote: None,
            last_generation: 0,
            starting: false,
            idle: Vec::new(),
            waiting: FairQueue::new(bounds.queue),
            average_hold_time: Duration::ZERO,
            sessions: VecDeque::new(),
            failures: 0,
            last_request: now,
        }
    }

    /// Applies an event and returns the effects to perform, in order.
    pub(super) fn handle_event(&mut self, event: Event<W, L, S>, now: Instant) -> Effects<W, L, S> {
        let mut effects = Vec::new();
        self.apply_event(event, now, &mut effects);
        self.waiting.retain(|request| !request.has_ended());
        self.sessions.retain(|request| !request.has_ended());
        self.remove_idle(|idle| idle.worker.has_ended(), &mut effects);
        self.lease(&mut effects);
        self.trim_idle(&mut effects);
        self.refill(now, &mut effects);
        effects
    }

    /// Returns when [`Event::Woken`] is due, if no other event comes first.
    pub(super) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let is_short = self.ready_count() < self.bounds.idle && self.failures < FAILURES_MAX;
        let quiet_at = is_short.then(|| self.last_request + QUIET);
        let serving = self.zygote.as_ref().filter(|zygote| zygote.has_served(self.idle_count(zygote.number)));
        let old_at = serving.map(|zygote| zygote.started + self.bounds.recycle_age);
        quiet_at.into_iter().chain(old_at).filter(|at| *at > now).min()
    }

    pub(super) fn stats(&self) -> PoolStats {
        PoolStats {
            places: self.bounds.running_max,
            idle: self.idle.len(),
            forking: self.zygote.as_ref().map_or(0, Generation::pending_forks),
            running: self.waiting.running(),
            waiting: self.waiting.len() + self.sessions.len(),
            zygotes: self.last_generation,
            zygote_age_s: None,
        }
    }

    /// When the current zygote was started.
    pub(super) fn zygote_started(&self) -> Option<Instant> {
        self.zygote.as_ref().map(|zygote| zygote.started)
    }

    fn apply_event(&mut self, event: Event<W, L, S>, now: Instant, effects: &mut Effects<W, L, S>) {
        match event {
            Event::Begin => self.start_zygote(effects),
            Event::Lease(owner, request) => self.enqueue(owner, request, now, effects),
            Event::Session(request) => {
                self.sessions.push_back(request);
                self.allow_retry(now);
            }
            Event::Released(owner, held) => {
                self.waiting.release(owner);
                self.average_hold_time = (self.average_hold_time * 7 + held) / 8;
            }
            Event::ZygoteStarted { generation } => {
                self.starting = false;
                let before = self.zygote.replace(Generation::new(generation, now));
                effects.extend(before.map(|before| Effect::Retire { generation: before.number }));
            }
            Event::ZygoteNotStarted(error) => self.zygote_failed(error, now, effects),
            Event::Forked { generation, purpose, worker } => {
                self.forked(generation, purpose, worker, effects);
            }
            Event::Crashed { generation } => {
                if let Some(zygote) = self.current_zygote(generation) {
                    zygote.crashed = true;
                }
            }
            Event::ZygoteGone { generation, error } => {
                // The end of a retired zygote has no effect.
                if self.current_zygote(generation).is_some() {
                    self.zygote = None;
                    effects.push(Effect::Retire { generation });
                    self.remove_idle(|idle| idle.generation == generation, effects);
                    self.record_failure(error, effects);
                }
            }
            Event::Woken => {}
        }
    }

    fn enqueue(&mut self, owner: Owner, request: L, now: Instant, effects: &mut Effects<W, L, S>) {
        // Requests that were given up take no space in the queue.
        self.waiting.retain(|request| !request.has_ended());
        if let Some(to) = self.waiting.push(owner, request) {
            let (waiting, retry_after) = (self.waiting.len(), self.retry_after());
            effects.push(Effect::QueueFull { to, waiting, retry_after });
        }
        self.allow_retry(now);
    }

    /// Permits another attempt after failures, since a new request has arrived.
    fn allow_retry(&mut self, now: Instant) {
        self.last_request = now;
        self.failures = self.failures.min(FAILURES_MAX - 1);
    }

    /// Estimates when the queue will have space, from recent executions.
    fn retry_after(&self) -> Duration {
        let turns = self.waiting.len() / self.bounds.running_max + 1;
        (self.average_hold_time * turns as u32).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }

    fn zygote_failed(&mut self, error: PoolError, now: Instant, effects: &mut Effects<W, L, S>) {
        self.starting = false;
        match &mut self.zygote {
            Some(zygote) => {
                zygote.renew(now);
                effects.push(Effect::NotReplaced(error));
            }
            None => {
                // A property of the host does not change by trying again.
                self.failures = FAILURES_MAX;
                self.refuse_all(error.to_string(), effects);
                effects.push(Effect::NoZygote(error));
            }
        }
    }

    fn forked(
        &mut self,
        generation: u32,
        purpose: ForkPurpose,
        worker: Result<W, PoolError>,
        effects: &mut Effects<W, L, S>,
    ) {
        let current = self.current_zygote(generation).map(|zygote| zygote.record_fork_result(purpose));
        match (worker, purpose) {
            (Ok(worker), ForkPurpose::Execution) => {
                self.failures = 0;
                self.idle.push(Idle { generation, worker });
            }
            (Ok(worker), ForkPurpose::Session) => {
                self.failures = 0;
                self.sessions.retain(|request| !request.has_ended());
                effects.push(match self.sessions.pop_front() {
                    Some(to) => Effect::HandOver { to, worker },
                    None => Effect::End(worker),
                });
            }
            (Err(error), _) if current.is_some() => self.record_failure(error, effects),
            // The end of its zygote was already counted as a failure.
            (Err(_), _) => {}
        }
    }

    /// Counts a temporary failure to provide a worker, and refuses the waiting requests if there were too many.
    fn record_failure(&mut self, error: PoolError, effects: &mut Effects<W, L, S>) {
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

    /// Leases idle workers to waiting requests, up to the limit of running executions.
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

    /// Ends idle workers of retired zygotes that exceed the limit; a retired zygote ends with its last worker. One
    /// such worker may have arrived after newer ones.
    fn trim_idle(&mut self, effects: &mut Effects<W, L, S>) {
        let current = self.zygote.as_ref().map(|zygote| zygote.number);
        while self.idle.len() > self.bounds.idle
            && let Some(at) = self.idle.iter().position(|idle| Some(idle.generation) != current)
        {
            effects.push(Effect::End(self.idle.remove(at).worker));
        }
    }

    /// Starts a zygote or requests forks, as needed.
    fn refill(&mut self, now: Instant, effects: &mut Effects<W, L, S>) {
        if self.failures >= FAILURES_MAX {
            return;
        }
        let for_runs = self.target_ready(now).saturating_sub(self.ready_count());
        let pending = self.zygote.as_ref().map_or(0, |zygote| zygote.pending_for_sessions);
        let for_sessions = self.sessions.len().min(SESSION_FORKS_MAX).saturating_sub(pending);
        let must_start = match &self.zygote {
            Some(zygote) => zygote.needs_replacement(self.idle_count(zygote.number), now, &self.bounds),
            None => for_runs > 0 || for_sessions > 0 || self.failures > 0,
        };
        if must_start {
            self.start_zygote(effects);
        }
        // Under load workers are not warmed up, since a waiting request would wait for that too.
        let warm = self.waiting.is_empty() && self.waiting.running() == 0;
        if let Some(zygote) = &mut self.zygote
            && for_runs + for_sessions > 0
        {
            zygote.record_fork_requests(for_runs, for_sessions);
            effects.push(Effect::Fork { generation: zygote.number, warm, for_runs, for_sessions });
        }
    }

    /// Number of workers that should be idle or pending. A fork slows down running executions, so idle workers are
    /// added only in a quiet moment.
    fn target_ready(&self, now: Instant) -> usize {
        let free = self.bounds.running_max - self.waiting.running();
        let is_quiet = now.duration_since(self.last_request) >= QUIET;
        let ahead = if is_quiet { self.bounds.idle } else { 0 };
        self.waiting.len().min(free).max(ahead)
    }

    /// Starts a zygote. The current one serves until the new one is ready.
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

    fn current_zygote(&mut self, generation: u32) -> Option<&mut Generation> {
        self.zygote.as_mut().filter(|zygote| zygote.number == generation)
    }

    fn idle_count(&self, generation: u32) -> usize {
        self.idle.iter().filter(|idle| idle.generation == generation).count()
    }

    /// Returns how many workers of the current zygote are idle or being forked for executions.
    fn ready_count(&self) -> usize {
        self.zygote.as_ref().map_or(0, |zygote| zygote.pending_for_runs + self.idle_count(zygote.number))
    }

    fn remove_idle(&mut self, ends: impl Fn(&Idle<W>) -> bool, effects: &mut Effects<W, L, S>) {
        let ended = self.idle.extract_if(.., |idle| ends(idle));
        effects.extend(ended.map(|idle| Effect::End(idle.worker)));
    }
}
