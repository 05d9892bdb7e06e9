//! The pool's task: the one owner of its zygote, its idle workers and its queue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lockhouse_base::telemetry;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::figures::{Figures, SharedFigures};
use super::launch::{Launch, Purpose};
use super::queue::Queue;
use super::worker::Worker;
use super::zygote::{self, Told, ZygoteHandle};
use super::{Event, Groups, Lease, Place, PoolError, PoolSettings, Start, Waiting, WaitingForSession};

/// Without other work, idle workers are refilled so long after the last lease.
const QUIET: Duration = Duration::from_millis(5);

/// After so many failures in a row those who wait are told; the next lease tries again.
const FAILURES_MAX: u32 = 3;

/// What whoever finds the queue full is told to wait, at least and at most.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);

const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The generation of no zygote.
const NOBODY: u32 = 0;

/// The pool's task.
pub(super) struct Keeper {
    settings: PoolSettings,
    launch: Arc<Launch>,
    events: mpsc::UnboundedSender<Event>,
    prepared: watch::Sender<Option<Start>>,
    zygote: Option<ZygoteHandle>,
    /// Tells the current zygote from those that retire or are dead. `NOBODY` while there is none.
    generation: u32,
    /// Of the zygote that was started last.
    last_generation: u32,
    starting: bool,
    started: Instant,
    /// A worker of this zygote crashed: what it learned of the address layout is worth nothing once there is a successor.
    crashed: bool,
    forks: u32,
    forking: usize,
    /// With their generation, in the order of their arrival.
    idle: VecDeque<(u32, Worker)>,
    waiting: Queue<Waiting>,
    /// How long a worker is held, of late.
    held: Duration,
    /// Sessions that begin. Their workers are forked for them alone.
    sessions: VecDeque<WaitingForSession>,
    forking_for_sessions: usize,
    failures: u32,
    last_lease: Instant,
    figures: SharedFigures,
}

impl Keeper {
    pub(super) fn new(
        settings: PoolSettings,
        control_groups: Groups,
        events: mpsc::UnboundedSender<Event>,
        prepared: watch::Sender<Option<Start>>,
        figures: SharedFigures,
    ) -> Self {
        Self {
            launch: Arc::new(Launch { command: settings.zygote.clone(), control_groups }),
            waiting: Queue::new(settings.queue),
            held: Duration::ZERO,
            settings,
            events,
            prepared,
            zygote: None,
            generation: NOBODY,
            last_generation: NOBODY,
            starting: false,
            started: Instant::now(),
            crashed: false,
            forks: 0,
            forking: 0,
            idle: VecDeque::new(),
            sessions: VecDeque::new(),
            forking_for_sessions: 0,
            failures: 0,
            last_lease: Instant::now(),
            figures,
        }
    }

    pub(super) async fn keep(mut self, mut inbox: mpsc::UnboundedReceiver<Event>) {
        self.start_zygote();
        loop {
            let missing = self.ready() < self.settings.idle && self.failures < FAILURES_MAX;
            let quiet_at = self.last_lease + QUIET;
            let old_at = self.started + self.settings.recycle_age;
            tokio::select! {
                event = inbox.recv() => match event {
                    Some(event) => self.hear(event),
                    None => return,
                },
                () = tokio::time::sleep_until(quiet_at), if missing && Instant::now() < quiet_at => {}
                () = tokio::time::sleep_until(old_at), if self.has_served() && Instant::now() < old_at => {}
            }
            self.balance();
            self.count();
        }
    }

    fn count(&self) {
        let figures = Figures {
            places: self.settings.running_max,
            idle: self.idle.len(),
            forking: self.forking + self.forking_for_sessions,
            running: self.waiting.running(),
            waiting: self.waiting.len() + self.sessions.len(),
            zygotes: self.last_generation,
            zygote_age_s: None,
        };
        self.figures.set(figures, self.zygote.as_ref().map(|_| self.started));
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Lease(owner, waiting) => {
                // Whoever gave up has no place in the queue.
                self.waiting.retain(|waiting| !waiting.is_closed());
                if let Some(left) = self.waiting.push(owner, waiting) {
                    let (waiting, retry_after) = (self.waiting.len(), self.retry_after());
                    let _ = left.send(Err(PoolError::QueueFull { waiting, retry_after }));
                }
                self.try_again();
            }
            Event::ForSession(waiting) => {
                self.sessions.push_back(waiting);
                self.try_again();
            }
            Event::Released(owner, held) => {
                self.waiting.released(owner);
                self.held = (self.held * 7 + held) / 8;
            }
            Event::ZygoteStarted(Ok((zygote, prepared)), generation) => {
                self.starting = false;
                self.prepared.send_replace(Some(Ok(prepared)));
                self.zygote = Some(zygote);
                self.generation = generation;
                (self.forks, self.forking, self.forking_for_sessions) = (0, 0, 0);
                self.crashed = false;
                self.started = Instant::now();
            }
            // One that works stays in its place, and is renewed when it is worn the next time.
            Event::ZygoteStarted(Err(error), _) if self.zygote.is_some() => {
                tracing::warn!("a new zygote could not be started, the old one goes on: {error}");
                (self.starting, self.crashed, self.forks) = (false, false, 0);
                self.started = Instant::now();
            }
            Event::ZygoteStarted(Err(error), _) => {
                self.starting = false;
                // What it says of the host will not change by asking again.
                self.failures = FAILURES_MAX;
                self.fail(&error);
                self.prepared.send_replace(Some(Err(Arc::new(error))));
            }
            Event::Admitted(admitted, purpose, generation) => {
                let is_current = generation == self.generation;
                let forking = match purpose {
                    Purpose::Execution => &mut self.forking,
                    Purpose::Session => &mut self.forking_for_sessions,
                };
                *forking = forking.saturating_sub(usize::from(is_current));
                match admitted {
                    Ok(worker) => {
                        self.failures = 0;
                        match purpose {
                            Purpose::Execution => self.idle.push_back((generation, worker)),
                            Purpose::Session => self.hand_over(worker),
                        }
                    }
                    Err(error) if is_current => self.failed(error),
                    // The end of its zygote has been counted.
                    Err(_) => {}
                }
            }
            Event::Crashed(generation) => self.crashed |= generation == self.generation,
            Event::ZygoteGone(error, generation) if generation == self.generation => {
                self.zygote = None;
                self.generation = NOBODY;
                (self.forking, self.forking_for_sessions) = (0, 0);
                self.idle.retain(|(of, _)| *of != generation);
                self.failed(error);
            }
            Event::ZygoteGone(..) => {}
        }
    }

    /// Somebody asks: after failures that is a reason to try once more.
    fn try_again(&mut self) {
        self.last_lease = Instant::now();
        self.failures = self.failures.min(FAILURES_MAX - 1);
    }

    /// Gives a worker to the session that has waited longest. One that nobody waits for any more ends.
    fn hand_over(&mut self, worker: Worker) {
        let mut worker = Ok(worker);
        while let Some(waiting) = self.sessions.pop_front() {
            match waiting.send(worker) {
                Ok(()) => return,
                Err(returned) => worker = returned,
            }
        }
    }

    /// When there will be room, as far as recent runs tell.
    fn retry_after(&self) -> Duration {
        let turns = self.waiting.len() / self.settings.running_max + 1;
        (self.held * turns as u32).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }

    /// Workers of the current zygote that are idle or on their way.
    fn ready(&self) -> usize {
        self.forking + self.idle.iter().filter(|(generation, _)| *generation == self.generation).count()
    }

    /// Whether workers of the current zygote have run anything.
    fn has_served(&self) -> bool {
        self.forks as usize > self.ready() + self.forking_for_sessions
    }

    /// Whether it is time for a zygote with other randomness and another address layout.
    fn is_worn(&self) -> bool {
        let is_old = self.started.elapsed() >= self.settings.recycle_age;
        self.crashed || self.has_served() && (self.forks >= self.settings.recycle_after || is_old)
    }

    /// Something went wrong that may go right the next time.
    fn failed(&mut self, error: PoolError) {
        self.failures += 1;
        tracing::warn!("{error}");
        if self.failures >= FAILURES_MAX {
            self.fail(&error);
        }
    }

    /// Tells everyone who waits.
    fn fail(&mut self, error: &PoolError) {
        for waiting in self.waiting.drain() {
            let _ = waiting.send(Err(PoolError::Refused(error.to_string())));
        }
        for waiting in self.sessions.drain(..) {
            let _ = waiting.send(Err(PoolError::Refused(error.to_string())));
        }
    }

    /// Hands out what is there and asks for what is missing.
    fn balance(&mut self) {
        self.waiting.retain(|waiting| !waiting.is_closed());
        self.sessions.retain(|waiting| !waiting.is_closed());
        // An idle worker can be killed by anyone who may.
        self.idle.retain(|(_, worker)| worker.process.is_alive());
        while self.waiting.running() < self.settings.running_max
            && !self.waiting.is_empty()
            && let Some((_, worker)) = self.idle.pop_back()
        {
            let Some((owner, waiting)) = self.waiting.next() else { break };
            let place = Place { owner, since: Instant::now(), events: self.events.clone() };
            // A lease that nobody takes any more gives its place back as it is dropped.
            let _ = waiting.send(Ok(Lease { worker, _place: place }));
        }
        // Those of a retired zygote make room, and with the last of them it ends. One may have come after newer ones.
        while self.idle.len() > self.settings.idle
            && let Some(at) = self.idle.iter().position(|(generation, _)| *generation != self.generation)
        {
            self.idle.remove(at);
        }
        if self.failures >= FAILURES_MAX {
            return;
        }
        let free = self.settings.running_max - self.waiting.running();
        let mut wanted = self.waiting.len().min(free);
        if self.last_lease.elapsed() >= QUIET {
            wanted = wanted.max(self.settings.idle);
        }
        let missing = wanted.saturating_sub(self.ready());
        let for_sessions = self.sessions.len().saturating_sub(self.forking_for_sessions);
        match &self.zygote {
            Some(_) if self.is_worn() => self.start_zygote(),
            None if missing > 0 || for_sessions > 0 || self.failures > 0 => self.start_zygote(),
            _ => {}
        }
        if let Some(zygote) = &self.zygote {
            // Under load there is no time to warm up: whoever waits would wait for that too.
            let warm = self.waiting.is_empty() && self.waiting.running() == 0;
            (0..for_sessions).for_each(|_| zygote.fork(false, Purpose::Session));
            (0..missing).for_each(|_| zygote.fork(warm, Purpose::Execution));
            self.forking_for_sessions += for_sessions;
            self.forking += missing;
            self.forks = self.forks.saturating_add((missing + for_sessions) as u32);
            telemetry::forked(self.settings.language, missing + for_sessions);
        }
    }

    /// A retiring zygote serves on until the new one is ready.
    fn start_zygote(&mut self) {
        if std::mem::replace(&mut self.starting, true) {
            return;
        }
        let reason = match (self.last_generation, &self.zygote) {
            (NOBODY, _) => "first",
            (_, None) => "ended",
            (_, Some(_)) if self.crashed => "crashed",
            (_, Some(_)) => "worn",
        };
        telemetry::zygote_started(self.settings.language, reason);
        self.last_generation += 1;
        let generation = self.last_generation;
        let (launch, events) = (self.launch.clone(), self.events.clone());
        tokio::spawn(async move {
            let (later, admitting) = (events.clone(), launch.clone());
            let told = move |told: Told| {
                let event = match told {
                    Told::Born(newborn) => {
                        let (later, launch) = (later.clone(), admitting.clone());
                        let purpose = newborn.purpose;
                        tokio::spawn(async move {
                            let admitted = Worker::admit(newborn, &launch).await;
                            later.send(Event::Admitted(admitted, purpose, generation))
                        });
                        return;
                    }
                    Told::NotBorn(reason, purpose) => {
                        Event::Admitted(Err(PoolError::Worker(reason)), purpose, generation)
                    }
                    Told::Crashed => Event::Crashed(generation),
                    Told::Gone(error) => Event::ZygoteGone(error, generation),
                };
                let _ = later.send(event);
            };
            let started = zygote::start(&launch, told).await;
            let _ = events.send(Event::ZygoteStarted(started, generation));
        });
    }
}
