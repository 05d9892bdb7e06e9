//! The task that owns a pool of worker processes. The task receives requests for workers, notices of released
//! workers, and reports of zygotes. It passes them to [`State`] as events, and performs the resulting
//! effects.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use lockhouse_base::telemetry;
use lockhouse_messages::Owner;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::launch_config::{ForkPurpose, LaunchConfig};
use super::lease::{Lease, LeaseSlots, ReleasedLease};
use super::state::{HasEnded, PoolEffect, PoolEvent, PoolLimits, State};
use super::stats::SharedStats;
use super::worker::Worker;
use super::zygote::{self, Reporter, ZygoteHandle, ZygoteReport};
use super::{ControlGroupResult, PoolError, PoolSettings, ZygoteStart};

/// Minimum number of idle workers that a pool keeps ready. One is enough, because a worker that is taken is
/// replaced within milliseconds.
const IDLE_MIN: usize = 1;

/// Capacity of the channel for requests to the task that owns the pool. While the channel is full, callers
/// wait. They wait only for a short time, because this task never blocks.
const REQUESTS_MAX: usize = 64;

/// Capacity of the channel for the reports of zygotes. While the channel is full, the tasks that serve
/// zygotes wait and read no messages from them.
const REPORTS_MAX: usize = 64;

/// The reply channel of a request for a lease: it receives a worker for one execution, or the reason why
/// there is none.
type LeaseRequest = oneshot::Sender<Result<Lease, PoolError>>;
/// The reply channel of a request for a session worker, which is kept for several runs. It receives the
/// worker, or the reason why there is none.
type SessionRequest = oneshot::Sender<Result<Worker, PoolError>>;
type DriverEvent = PoolEvent<Worker, LeaseRequest, SessionRequest>;
type DriverEffect = PoolEffect<Worker, LeaseRequest, SessionRequest>;

/// A request to the task that owns a worker pool.
#[derive(Debug)]
pub(super) enum PoolRequest {
    /// Lease a worker for one execution of this owner (an AI client).
    Lease(Owner, LeaseRequest),
    /// Provide a worker for a session, which keeps the worker for several runs.
    Session(SessionRequest),
}

impl HasEnded for Worker {
    /// Whether the worker process has ended. A process outside of Lockhouse may have killed an idle worker.
    fn has_ended(&self) -> bool {
        !self.process.is_alive()
    }
}

impl<T> HasEnded for oneshot::Sender<T> {
    fn has_ended(&self) -> bool {
        self.is_closed()
    }
}

/// The task that owns a worker pool and performs all of its I/O.
struct PoolTask {
    language: &'static str,
    state: State<Worker, LeaseRequest, SessionRequest>,
    launch: Arc<LaunchConfig>,
    /// The running zygotes that may still fork workers. The key is the generation number, which is 1 for the first
    /// zygote of the pool.
    zygotes: HashMap<u32, ZygoteHandle>,
    /// Maximum number of forks that are requested of one zygote and not yet answered.
    forks_max: usize,
    /// The slots that limit how many workers are leased to executions at one time.
    slots: LeaseSlots,
    /// The channel on which zygotes report to the pool. Each report comes with the generation number of its
    /// zygote.
    reports: mpsc::Sender<(u32, ZygoteReport)>,
    /// Publishes the result of the latest zygote start to the handles of the pool ([`super::Pool`]).
    prepared: watch::Sender<Option<ZygoteStart>>,
    figures: SharedStats,
}

/// Starts the task that owns a pool and returns the channel for requests to it. The task ends when all senders of
/// this channel are dropped. It publishes the results of zygote starts through `prepared`, and the pool's counters
/// through `figures`.
pub(super) fn start(
    settings: PoolSettings,
    control_groups: ControlGroupResult,
    prepared: watch::Sender<Option<ZygoteStart>>,
    figures: SharedStats,
) -> mpsc::Sender<PoolRequest> {
    let PoolSettings { language, zygote, idle, running_max, queue, recycle_after, recycle_age, unused_max } =
        settings;
    let bounds =
        PoolLimits { idle_min: IDLE_MIN, idle, running_max, queue, recycle_after, recycle_age, unused_max };
    let (requests, inbox) = mpsc::channel(REQUESTS_MAX);
    let (reports, reports_inbox) = mpsc::channel(REPORTS_MAX);
    let (slots, released) = LeaseSlots::new(running_max);
    let driver = PoolTask {
        language,
        state: State::new(bounds, Instant::now()),
        launch: Arc::new(LaunchConfig { command: zygote, control_groups }),
        zygotes: HashMap::new(),
        forks_max: bounds.pending_forks_max(),
        slots,
        reports,
        prepared,
        figures,
    };
    tokio::spawn(driver.run(inbox, released, reports_inbox));
    requests
}

impl PoolTask {
    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<PoolRequest>,
        mut released: mpsc::Receiver<ReleasedLease>,
        mut reports_inbox: mpsc::Receiver<(u32, ZygoteReport)>,
    ) {
        self.handle_event(PoolEvent::Begin);
        loop {
            let wake_at = self.state.wake_at(Instant::now());
            let event = tokio::select! {
                // Released leases are handled before new requests.
                biased;
                Some(ReleasedLease { owner, held }) = released.recv() => PoolEvent::Released(owner, held),
                Some((generation, report)) = reports_inbox.recv() => self.event_from_report(generation, report),
                request = inbox.recv() => match request {
                    Some(PoolRequest::Lease(owner, request)) => PoolEvent::Lease(owner, request),
                    Some(PoolRequest::Session(request)) => PoolEvent::Session(request),
                    None => return,
                },
                () = async { match wake_at { Some(at) => sleep_until(at).await, None => pending().await } } => {
                    PoolEvent::Woken
                }
            };
            self.handle_event(event);
            self.figures.set(self.state.stats(), self.state.zygote_started());
        }
    }

    fn handle_event(&mut self, event: DriverEvent) {
        for effect in self.state.handle_event(event, Instant::now()) {
            self.perform(effect);
        }
    }

    /// Converts a zygote's report into an event for the pool's state machine.
    fn event_from_report(&mut self, generation: u32, report: ZygoteReport) -> DriverEvent {
        match report {
            ZygoteReport::Started(zygote, prepared) => {
                self.prepared.send_replace(Some(Ok(prepared)));
                self.zygotes.insert(generation, zygote);
                PoolEvent::ZygoteStarted { generation }
            }
            ZygoteReport::NotStarted(error) => PoolEvent::ZygoteNotStarted(error),
            ZygoteReport::Forked(worker, purpose) => PoolEvent::Forked { generation, purpose, worker },
            ZygoteReport::Crashed => PoolEvent::Crashed { generation },
            ZygoteReport::Gone(error) => PoolEvent::ZygoteGone { generation, error },
        }
    }

    fn perform(&mut self, effect: DriverEffect) {
        match effect {
            PoolEffect::Lease { owner, to, worker } => {
                // If the receiver is gone, the dropped lease releases its slot.
                let _ = to.send(Ok(Lease::new(worker, self.slots.acquire(owner))));
            }
            PoolEffect::HandOver { to, worker } => drop(to.send(Ok(worker))),
            PoolEffect::End(worker) => drop(worker),
            PoolEffect::QueueFull { to, waiting, retry_after } => {
                let _ = to.send(Err(PoolError::QueueFull { waiting, retry_after }));
            }
            PoolEffect::Refuse { leases, sessions, reason } => {
                for to in leases {
                    let _ = to.send(Err(PoolError::Refused(reason.clone())));
                }
                for to in sessions {
                    let _ = to.send(Err(PoolError::Refused(reason.clone())));
                }
            }
            PoolEffect::StartZygote { generation, reason } => {
                telemetry::count_zygote_start(self.language, reason);
                let reporter = Reporter::new(generation, self.reports.clone());
                tokio::spawn(zygote::run(self.launch.clone(), self.forks_max, reporter));
            }
            PoolEffect::Retire { generation } => drop(self.zygotes.remove(&generation)),
            PoolEffect::Fork { generation, warm, for_runs, for_sessions } => {
                let Some(zygote) = self.zygotes.get(&generation) else { return };
                (0..for_sessions).for_each(|_| zygote.fork(false, ForkPurpose::Session));
                (0..for_runs).for_each(|_| zygote.fork(warm, ForkPurpose::Execution));
                telemetry::count_forks(self.language, for_runs + for_sessions);
            }
            PoolEffect::Failed(error) => tracing::warn!("{error}"),
            PoolEffect::NotReplaced(error) => {
                tracing::warn!("a new zygote could not be started, the current one continues: {error}");
            }
            PoolEffect::NoZygote(error) => {
                self.prepared.send_replace(Some(Err(Arc::new(error))));
            }
        }
    }
}
