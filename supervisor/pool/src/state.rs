//! The state machine of a pool: its zygotes, idle workers and waiting requests.
//!
//! The state machine has no I/O and no clock: each [`PoolEvent`] comes with the current time, and results in [`PoolEffect`]s
//! for the pool's task to perform. Workers and requests are moved into the state machine and out of it, so that none
//! can be used twice.

mod events;
mod generation;
mod idle_target;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use lockhouse_messages::Owner;
use tokio::time::Instant;

use super::PoolError;
use super::fair_queue::FairQueue;
use super::launch_config::ForkPurpose;
use super::stats::PoolStats;
use events::SESSION_FORKS_MAX;
pub(super) use events::{HasEnded, PoolEffect, PoolEvent, PoolLimits};
use generation::Generation;
use idle_target::IdleTarget;

/// How long no request must have arrived before the pool forks idle workers for future requests. The delay avoids forks
/// that would slow down running executions. Workers for waiting requests are forked at once.
const QUIET: Duration = Duration::from_millis(5);

/// Number of consecutive failures to provide a worker after which the pool refuses all waiting requests and stops
/// trying. After that, each new request makes the pool try once more.
const FAILURES_MAX: u32 = 3;

/// If the queue is full, an AI client is told to try again after at least this time.
/// Bound: workers and programs.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);
/// If the queue is full, an AI client is told to try again after at most this time.
/// Bound: workers and programs.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// A sandboxed worker that waits for an execution, and the generation number of the zygote that forked it.
struct Idle<W> {
    generation: u32,
    worker: W,
}

/// The state of a pool. It owns all idle workers and waiting requests. `W` is a worker, `L` a request for a worker for
/// one execution (a lease), `S` a session's request for a worker.
pub(super) struct State<W, L, S> {
    bounds: PoolLimits,
    /// The current zygote, the process from which workers are forked; `None` if none runs. Earlier zygotes are
    /// retired: they fork no more workers.
    zygote: Option<Generation>,
    /// Generation number of the zygote that was started most recently; 0 before the first start.
    last_generation: u32,
    /// Whether a zygote is being started.
    starting: bool,
    /// Idle workers, in the order in which they became ready.
    idle: Vec<Idle<W>>,
    idle_target: IdleTarget,
    /// Requests that wait for a worker to execute code, and the number of leased workers of each owner.
    waiting: FairQueue<L>,
    /// The moving average of the times from the start of a lease to its release.
    average_hold_time: Duration,
    /// The waiting requests of sessions. Each session gets a newly forked worker, not an idle one. The engine crate
    /// limits the number of sessions.
    sessions: VecDeque<S>,
    /// Number of consecutive failures to provide a worker. Reset when a worker becomes ready.
    failures: u32,
    /// When the most recent request for a worker arrived, for an execution or for a session. Before the first request,
    /// the time when the pool was started.
    last_request: Instant,
    /// When the most recent lease was released. Before the first lease, the time when the pool was started.
    last_release: Instant,
}

type Effects<W, L, S> = Vec<PoolEffect<W, L, S>>;

impl<W: HasEnded, L: HasEnded, S: HasEnded> State<W, L, S> {
    pub(super) fn new(bounds: PoolLimits, now: Instant) -> Self {
        Self {
            bounds,
            zygote: None,
            last_generation: 0,
            starting: false,
            idle: Vec::new(),
            idle_target: IdleTarget::new(bounds.idle_min, bounds.idle, now),
            waiting: FairQueue::new(bounds.queue),
            average_hold_time: Duration::ZERO,
            sessions: VecDeque::new(),
            failures: 0,
            last_request: now,
            last_release: now,
        }
    }

    /// Applies an event and returns the resulting effects in the order in which the caller must perform them.
    pub(super) fn handle_event(&mut self, event: PoolEvent<W, L, S>, now: Instant) -> Effects<W, L, S> {
        let mut effects = Vec::new();
        self.apply_event(event, now, &mut effects);
        self.waiting.retain(|request| !request.has_ended());
        self.sessions.retain(|request| !request.has_ended());
        self.lease(&mut effects);
        self.raise_idle_target(now);
        self.trim_idle(now, &mut effects);
        self.retire_unused(now, &mut effects);
        self.refill(now, &mut effects);
        effects
    }

    /// Returns when [`PoolEvent::Woken`] must be sent if no other event comes first: to fork idle workers, to end surplus
    /// ones, or to replace an old zygote. `None` if nothing needs to be done later.
    pub(super) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let is_short = self.ready_count() < self.count_ahead() && self.failures < FAILURES_MAX;
        let shrinks_at = self.idle_target.shrinks_at(self.idle.len() > self.idle_target.count());
        let quiet_at = is_short.then(|| self.last_request + QUIET);
        let serving = self.zygote.as_ref().filter(|zygote| zygote.has_served(self.idle_count(zygote.number)));
        let old_at = serving.map(|zygote| zygote.started + self.bounds.recycle_age);
        let unused_at = self.unused_at();
        quiet_at.into_iter().chain(shrinks_at).chain(old_at).chain(unused_at).filter(|at| *at > now).min()
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

    /// Returns the time from which the age of the current zygote is counted, or `None` if no zygote runs.
    pub(super) fn zygote_started(&self) -> Option<Instant> {
        self.zygote.as_ref().map(|zygote| zygote.started)
    }

    fn apply_event(&mut self, event: PoolEvent<W, L, S>, now: Instant, effects: &mut Effects<W, L, S>) {
        match event {
            PoolEvent::Begin if self.bounds.unused_max.is_some() => {}
            PoolEvent::Begin => self.start_zygote(effects),
            PoolEvent::Lease(owner, request) => self.enqueue(owner, request, now, effects),
            PoolEvent::Session(request) => {
                self.sessions.push_back(request);
                self.allow_retry(now);
            }
            PoolEvent::Released(owner, held) => {
                self.waiting.release(owner);
                self.last_release = now;
                self.average_hold_time = (self.average_hold_time * 7 + held) / 8;
            }
            PoolEvent::ZygoteStarted { generation } => {
                self.starting = false;
                let before = self.zygote.replace(Generation::new(generation, now));
                effects.extend(before.map(|before| PoolEffect::Retire { generation: before.number }));
            }
            PoolEvent::ZygoteNotStarted(error) => self.zygote_failed(error, now, effects),
            PoolEvent::Forked { generation, purpose, worker } => {
                self.forked(generation, purpose, worker, effects);
            }
            PoolEvent::Crashed { generation } => {
                if let Some(zygote) = self.current_zygote(generation) {
                    zygote.crashed = true;
                }
            }
            PoolEvent::ZygoteGone { generation, error } => {
                // The end of a retired zygote changes nothing.
                if self.current_zygote(generation).is_some() {
                    self.zygote = None;
                    effects.push(PoolEffect::Retire { generation });
                    self.remove_idle(|idle| idle.generation == generation, effects);
                    self.record_failure(error, effects);
                }
            }
            PoolEvent::Woken => {}
        }
    }

    fn enqueue(&mut self, owner: Owner, request: L, now: Instant, effects: &mut Effects<W, L, S>) {
        // Requests that were given up take no space in the queue.
        self.waiting.retain(|request| !request.has_ended());
        if let Some(to) = self.waiting.push(owner, request) {
            let (waiting, retry_after) = (self.waiting.len(), self.retry_after());
            effects.push(PoolEffect::QueueFull { to, waiting, retry_after });
        }
        self.allow_retry(now);
    }

    /// Records the arrival of a new request. If the pool has stopped trying after [`FAILURES_MAX`] failures, lets it
    /// try once more.
    fn allow_retry(&mut self, now: Instant) {
        self.last_request = now;
        self.failures = self.failures.min(FAILURES_MAX - 1);
    }

    /// Estimates how long it takes until the queue has space, from the length of the queue and the duration of recent
    /// leases. An AI client whose request was refused is told to try again after this time.
    fn retry_after(&self) -> Duration {
        let turns = self.waiting.len() / self.bounds.running_max + 1;
        (self.average_hold_time * turns as u32).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }

    /// Handles the failed start of a zygote. The current zygote stays in use if there is one; if not, all waiting
    /// requests are refused.
    fn zygote_failed(&mut self, error: PoolError, now: Instant, effects: &mut Effects<W, L, S>) {
        self.starting = false;
        match &mut self.zygote {
            Some(zygote) => {
                zygote.renew(now);
                effects.push(PoolEffect::NotReplaced(error));
            }
            None => {
                // The reason is probably a property of the host, so another attempt would fail as well.
                self.failures = FAILURES_MAX;
                self.refuse_all(error.to_string(), effects);
                effects.push(PoolEffect::NoZygote(error));
            }
        }
    }

    /// Handles the result of a fork. A worker for an execution becomes idle, a worker for a session is given to the
    /// session that has waited longest, and a failed fork is counted.
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
                    Some(to) => PoolEffect::HandOver { to, worker },
                    None => PoolEffect::End(worker),
                });
            }
            (Err(error), _) if current.is_some() => self.record_failure(error, effects),
            // The fork failed because its zygote ended, which was counted as a failure already.
            (Err(_), _) => {}
        }
    }

    /// Counts a temporary failure to provide a worker. After [`FAILURES_MAX`] failures in a row, refuses all waiting
    /// requests.
    fn record_failure(&mut self, error: PoolError, effects: &mut Effects<W, L, S>) {
        self.failures += 1;
        let reason = error.to_string();
        effects.push(PoolEffect::Failed(error));
        if self.failures >= FAILURES_MAX {
            self.refuse_all(reason, effects);
        }
    }

    /// Removes all waiting requests from the pool and refuses them with this reason.
    fn refuse_all(&mut self, reason: String, effects: &mut Effects<W, L, S>) {
        let (leases, sessions) = (self.waiting.drain().collect(), self.sessions.drain(..).collect());
        effects.push(PoolEffect::Refuse { leases, sessions, reason });
    }

    /// Leases idle workers to waiting requests, up to the maximum number of running executions.
    fn lease(&mut self, effects: &mut Effects<W, L, S>) {
        while self.waiting.running() < self.bounds.running_max
            && !self.waiting.is_empty()
            && let Some(Idle { generation, worker }) = self.idle.pop()
        {
            // A process outside of Lockhouse may have killed it.
            if worker.has_ended() {
                effects.push(PoolEffect::End(worker));
                continue;
            }
            let Some((owner, to)) = self.waiting.next() else {
                return self.idle.push(Idle { generation, worker });
            };
            effects.push(PoolEffect::Lease { owner, to, worker });
        }
    }

    /// Raises the number of idle workers to keep by one, if a new request found no idle worker although the maximum
    /// number of running executions is not reached.
    fn raise_idle_target(&mut self, now: Instant) {
        let is_new = self.last_request == now;
        if is_new && !self.waiting.is_empty() && self.waiting.running() < self.bounds.running_max {
            self.idle_target.raise(now);
        }
    }

    /// Kills the idle workers beyond the number to keep. Workers of retired zygotes are killed first and at once,
    /// because a retired zygote ends only with its last worker. Such workers can be anywhere in the list, since a fork
    /// of a retired zygote may have ended after forks of the current one. Workers of the current zygote are killed only
    /// after a while in which every request found an idle worker ([`IdleTarget::shrink_if_due`]).
    fn trim_idle(&mut self, now: Instant, effects: &mut Effects<W, L, S>) {
        let current = self.zygote.as_ref().map(|zygote| zygote.number);
        while self.idle.len() > self.idle_target.count()
            && let Some(at) = self.idle.iter().position(|idle| Some(idle.generation) != current)
        {
            effects.push(PoolEffect::End(self.idle.remove(at).worker));
        }
        if self.idle_target.shrink_if_due(now) {
            let surplus = self.idle.len().saturating_sub(self.idle_target.count());
            effects.extend(self.idle.drain(..surplus).map(|idle| PoolEffect::End(idle.worker)));
        }
    }

    /// Starts a zygote if workers are needed and none runs, or if the current zygote must be replaced. Requests forks
    /// from the current zygote if there are fewer workers than needed. Does neither after [`FAILURES_MAX`] failures.
    fn refill(&mut self, now: Instant, effects: &mut Effects<W, L, S>) {
        if self.failures >= FAILURES_MAX {
            return;
        }
        let for_runs = self.target_ready(now).saturating_sub(self.ready_count());
        let pending = self.zygote.as_ref().map_or(0, |zygote| zygote.pending_for_sessions);
        let for_sessions = self.sessions.len().min(SESSION_FORKS_MAX).saturating_sub(pending);
        let must_start = match &self.zygote {
            Some(zygote) => zygote.needs_replacement(self.idle_count(zygote.number), now, &self.bounds),
            None => for_runs > 0 || for_sessions > 0 || self.failures > 0 && self.bounds.unused_max.is_none(),
        };
        if must_start {
            self.start_zygote(effects);
        }
        // While executions run or wait, workers are forked without warm-up, since a waiting request would also wait for
        // the warm-up.
        let warm = self.waiting.is_empty() && self.waiting.running() == 0;
        if let Some(zygote) = &mut self.zygote
            && for_runs + for_sessions > 0
        {
            zygote.record_fork_requests(for_runs, for_sessions);
            effects.push(PoolEffect::Fork { generation: zygote.number, warm, for_runs, for_sessions });
        }
    }

    /// Returns how many workers should be idle or being forked. Idle workers for future requests are included only if
    /// no request has arrived for [`QUIET`], since a fork slows down running executions.
    fn target_ready(&self, now: Instant) -> usize {
        let free = self.bounds.running_max - self.waiting.running();
        let is_quiet = now.duration_since(self.last_request) >= QUIET;
        let ahead = if is_quiet { self.count_ahead() } else { 0 };
        self.waiting.len().min(free).max(ahead)
    }

    /// Returns how many idle workers should be ready for future requests. None, if only a request may start the zygote.
    fn count_ahead(&self) -> usize {
        if self.zygote.is_none() && self.bounds.unused_max.is_some() { 0 } else { self.idle_target.count() }
    }

    /// Returns when the zygote must be retired, and the idle workers ended, if no request arrives; `None` if they may stay,
    /// or if there are none. Workers of a retired zygote can be idle while no zygote runs.
    fn unused_at(&self) -> Option<Instant> {
        let in_use = self.waiting.running() > 0 || !self.waiting.is_empty() || !self.sessions.is_empty();
        let unused_max = self.bounds.unused_max.filter(|_| !in_use)?;
        let started = self.zygote.as_ref().map(|zygote| zygote.started);
        let used = self.last_request.max(self.last_release);
        (started.is_some() || !self.idle.is_empty())
            .then(|| started.map_or(used, |at| at.max(used)) + unused_max)
    }

    /// Retires the zygote, and kills the idle workers, if the pool was unused for too long. Waits for pending forks, since
    /// their workers would otherwise stay.
    fn retire_unused(&mut self, now: Instant, effects: &mut Effects<W, L, S>) {
        let has_pending_forks = self.zygote.as_ref().is_some_and(|zygote| zygote.pending_forks() > 0);
        let is_due = self.unused_at().is_some_and(|at| now >= at);
        if is_due && !self.starting && !has_pending_forks {
            effects.extend(self.zygote.take().map(|zygote| PoolEffect::Retire { generation: zygote.number }));
            self.remove_idle(|_| true, effects);
        }
    }

    /// Starts a zygote, unless one is being started already. The current zygote continues to fork workers until
    /// the new one is ready.
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
        effects.push(PoolEffect::StartZygote { generation: self.last_generation, reason });
    }

    /// Returns the current zygote if it has this generation; `None` if the zygote of this generation is retired or has
    /// ended.
    fn current_zygote(&mut self, generation: u32) -> Option<&mut Generation> {
        self.zygote.as_mut().filter(|zygote| zygote.number == generation)
    }

    /// Returns how many idle workers were forked from the zygote of this generation.
    fn idle_count(&self, generation: u32) -> usize {
        self.idle.iter().filter(|idle| idle.generation == generation).count()
    }

    /// Returns how many workers of the current zygote are idle or being forked for executions.
    fn ready_count(&self) -> usize {
        self.zygote.as_ref().map_or(0, |zygote| zygote.pending_for_runs + self.idle_count(zygote.number))
    }

    /// Removes the idle workers for which `ends` returns `true`, and kills them.
    fn remove_idle(&mut self, ends: impl Fn(&Idle<W>) -> bool, effects: &mut Effects<W, L, S>) {
        let ended = self.idle.extract_if(.., |idle| ends(idle));
        effects.extend(ended.map(|idle| PoolEffect::End(idle.worker)));
    }
}
