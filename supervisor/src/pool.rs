//! Sealed workers, kept ahead of need, one pool for each language.
//!
//! One task owns a pool. It is told what happens through [`Event`], and after each event it hands idle workers to those
//! who wait and asks the zygote for as many forks as are missing. Refilling waits for a quiet moment, since a fork
//! beside a running execution costs that execution time.

mod process;
mod seal;
mod worker;
mod zygote;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

pub(crate) use seal::Unsealed;
pub(crate) use worker::Death;
use worker::Worker;
use zygote::{Birth, ZygoteHandle};
pub(crate) use zygote::{Prepared, ZygoteCommand};

/// Without other work, idle workers are refilled so long after the last lease.
const QUIET: Duration = Duration::from_millis(5);
/// After so many failures in a row those who wait are told; the next lease tries again.
const FAILURES_MAX: u32 = 3;

/// Why there is no worker.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PoolError {
    /// The interpreter or the worker binary cannot be started.
    #[error("cannot start {program}: {source}")]
    Start { program: PathBuf, source: std::io::Error },
    /// The zygote found that it cannot work on this host.
    #[error("{0}")]
    Refused(String),
    /// The zygote failed.
    #[error("the zygote failed: {0}")]
    Zygote(String),
    /// A worker failed before it was sealed.
    #[error("a worker could not be made: {0}")]
    Worker(String),
    /// The kernel does not confirm the seal.
    #[error(transparent)]
    Unsealed(#[from] Unsealed),
    /// Too many wait already.
    #[error("{0} executions wait for a worker already; try again later")]
    QueueFull(usize),
    /// The pool has ended.
    #[error("the supervisor is shutting down")]
    Closed,
}

impl PoolError {
    fn zygote(reason: impl Into<String>) -> Self {
        Self::Zygote(reason.into())
    }

    fn system(errno: nix::Error) -> Self {
        Self::Zygote(errno.desc().into())
    }
}

/// How a pool is kept.
#[derive(Clone, Debug)]
pub(crate) struct PoolSettings {
    pub(crate) zygote: ZygoteCommand,
    /// Sealed workers kept ahead of need.
    pub(crate) idle: usize,
    /// Executions at one time.
    pub(crate) running_max: usize,
    /// Executions that may wait.
    pub(crate) queue_max: usize,
    /// Forks after which the zygote is started anew, for new randomness and a new address layout.
    pub(crate) recycle_after: u32,
}

type Waiting = oneshot::Sender<Result<Lease, PoolError>>;

enum Event {
    Lease(Waiting),
    Released,
    ZygoteStarted(Result<(ZygoteHandle, Prepared), PoolError>, u32),
    Admitted(Result<Worker, PoolError>),
    ZygoteGone(PoolError, u32),
}

/// A handle to the pool's task.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    events: mpsc::UnboundedSender<Event>,
    prepared: watch::Receiver<Option<Prepared>>,
}

/// An exclusive hold on a worker, which ends with it.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) worker: Worker,
    /// Dropped after the worker: its place is free only once it is killed.
    _place: Place,
}

#[derive(Debug)]
struct Place(mpsc::UnboundedSender<Event>);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Released);
    }
}

impl Pool {
    /// Starts the pool's task, and with it a zygote.
    pub(crate) fn start(settings: PoolSettings) -> Self {
        let (events, inbox) = mpsc::unbounded_channel();
        let (prepared, watch) = watch::channel(None);
        tokio::spawn(Keeper::new(settings, events.clone(), prepared).keep(inbox));
        Self { events, prepared: watch }
    }

    /// Waits for a sealed worker.
    pub(crate) async fn lease(&self) -> Result<Lease, PoolError> {
        let (waiting, answer) = oneshot::channel();
        self.events.send(Event::Lease(waiting)).map_err(|_| PoolError::Closed)?;
        answer.await.map_err(|_| PoolError::Closed)?
    }

    /// What the zygote said of itself, once it has.
    pub(crate) fn prepared(&self) -> Option<Prepared> {
        self.prepared.borrow().clone()
    }
}

/// The pool's task.
struct Keeper {
    settings: PoolSettings,
    events: mpsc::UnboundedSender<Event>,
    prepared: watch::Sender<Option<Prepared>>,
    zygote: Option<ZygoteHandle>,
    /// Tells the current zygote from those that retire.
    generation: u32,
    starting: bool,
    forks: u32,
    forking: usize,
    idle: Vec<Worker>,
    waiting: VecDeque<Waiting>,
    running: usize,
    failures: u32,
    last_lease: Instant,
}

impl Keeper {
    fn new(
        settings: PoolSettings,
        events: mpsc::UnboundedSender<Event>,
        prepared: watch::Sender<Option<Prepared>>,
    ) -> Self {
        Self {
            settings,
            events,
            prepared,
            zygote: None,
            generation: 0,
            starting: false,
            forks: 0,
            forking: 0,
            idle: Vec::new(),
            waiting: VecDeque::new(),
            running: 0,
            failures: 0,
            last_lease: Instant::now(),
        }
    }

    async fn keep(mut self, mut inbox: mpsc::UnboundedReceiver<Event>) {
        self.start_zygote();
        loop {
            let missing = self.idle.len() + self.forking < self.settings.idle && self.failures < FAILURES_MAX;
            let quiet_at = self.last_lease + QUIET;
            tokio::select! {
                event = inbox.recv() => match event {
                    Some(event) => self.hear(event),
                    None => return,
                },
                () = tokio::time::sleep_until(quiet_at), if missing && Instant::now() < quiet_at => {}
            }
            self.balance();
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Lease(waiting) if self.waiting.len() >= self.settings.queue_max => {
                let _ = waiting.send(Err(PoolError::QueueFull(self.waiting.len())));
            }
            Event::Lease(waiting) => {
                self.last_lease = Instant::now();
                self.waiting.push_back(waiting);
                if self.failures >= FAILURES_MAX {
                    self.failures = FAILURES_MAX - 1;
                }
            }
            Event::Released => self.running -= 1,
            Event::ZygoteStarted(Ok((zygote, prepared)), generation) => {
                self.starting = false;
                self.prepared.send_replace(Some(prepared));
                self.zygote = Some(zygote);
                self.generation = generation;
                (self.forks, self.forking) = (0, 0);
            }
            Event::ZygoteStarted(Err(error), _) => {
                self.starting = false;
                // What it says of the host will not change by asking again.
                self.failures = FAILURES_MAX;
                self.fail(error);
            }
            Event::Admitted(Ok(worker)) => {
                self.forking = self.forking.saturating_sub(1);
                self.failures = 0;
                self.idle.push(worker);
            }
            Event::Admitted(Err(error)) => {
                self.forking = self.forking.saturating_sub(1);
                self.failed(error);
            }
            Event::ZygoteGone(error, generation) if generation == self.generation => {
                self.zygote = None;
                self.idle.clear();
                self.failed(error);
            }
            Event::ZygoteGone(..) => {}
        }
    }

    /// Something went wrong that may go right the next time.
    fn failed(&mut self, error: PoolError) {
        self.failures += 1;
        tracing::warn!("{error}");
        if self.failures >= FAILURES_MAX {
            self.fail(error);
        }
    }

    /// Tells everyone who waits.
    fn fail(&mut self, error: PoolError) {
        let reason = error.to_string();
        let mut first = Some(error);
        for waiting in self.waiting.drain(..) {
            let error = first.take().unwrap_or_else(|| PoolError::Refused(reason.clone()));
            let _ = waiting.send(Err(error));
        }
    }

    /// Hands out what is there and asks for what is missing.
    fn balance(&mut self) {
        self.waiting.retain(|waiting| !waiting.is_closed());
        // An idle worker can be killed by anyone who may.
        self.idle.retain(|worker| worker.process.is_alive());
        while self.running < self.settings.running_max
            && !self.waiting.is_empty()
            && let Some(worker) = self.idle.pop()
        {
            let Some(waiting) = self.waiting.pop_front() else { break };
            self.running += 1;
            // A lease that nobody takes any more gives its place back as it is dropped.
            let _ = waiting.send(Ok(Lease { worker, _place: Place(self.events.clone()) }));
        }
        if self.failures >= FAILURES_MAX {
            return;
        }
        let free = self.settings.running_max - self.running;
        let mut wanted = self.waiting.len().min(free);
        if self.last_lease.elapsed() >= QUIET {
            wanted = wanted.max(self.settings.idle);
        }
        let missing = wanted.saturating_sub(self.idle.len() + self.forking);
        match &self.zygote {
            Some(_) if self.forks >= self.settings.recycle_after => self.start_zygote(),
            None if missing > 0 || self.failures > 0 => self.start_zygote(),
            _ => {}
        }
        if let Some(zygote) = &self.zygote {
            // Under load there is no time to warm up: whoever waits would wait for that too.
            let warm = self.waiting.is_empty() && self.running == 0;
            (0..missing).for_each(|_| zygote.fork(warm));
            self.forking += missing;
            self.forks = self.forks.saturating_add(missing as u32);
        }
    }

    /// A retiring zygote serves on until the new one is ready.
    fn start_zygote(&mut self) {
        if std::mem::replace(&mut self.starting, true) {
            return;
        }
        let generation = self.generation + 1;
        let (command, events, limits) =
            (self.settings.zygote.clone(), self.events.clone(), self.settings.zygote.profile.limits);
        tokio::spawn(async move {
            let told = events.clone();
            let born = move |birth: Birth| match birth {
                Birth::Worker(newborn) => {
                    let told = told.clone();
                    tokio::spawn(
                        async move { told.send(Event::Admitted(Worker::admit(newborn, limits).await)) },
                    );
                }
                Birth::Failed(reason) => drop(told.send(Event::Admitted(Err(PoolError::Worker(reason))))),
                Birth::Gone(error) => drop(told.send(Event::ZygoteGone(error, generation))),
            };
            let started = zygote::start(&command, born).await;
            let _ = events.send(Event::ZygoteStarted(started, generation));
        });
    }
}
