//! The pool's task: it hears requests, released leases and zygotes, has [`State`] say what is to be done, and does it.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;

use lockhouse_base::principal::Owner;
use lockhouse_base::telemetry;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use super::figures::SharedFigures;
use super::launch::{Launch, Purpose};
use super::lease::{Lease, Places, Released};
use super::state::{Bounds, Effect, Ends, Event, State};
use super::worker::Worker;
use super::zygote::{self, Report, Reporter, ZygoteHandle};
use super::{Groups, PoolError, PoolSettings, Start};

/// Requests that the task has not heard yet. Whoever finds this full waits for room: the task itself waits for nothing
/// but these messages, so it comes soon.
const REQUESTS_MAX: usize = 64;

/// Reports of zygotes that the task has not heard yet. When this is full, the zygotes' tasks wait, and read nothing from their
/// zygotes meanwhile.
const REPORTS_MAX: usize = 64;

type LeaseRequest = oneshot::Sender<Result<Lease, PoolError>>;
type SessionRequest = oneshot::Sender<Result<Worker, PoolError>>;
type PoolEvent = Event<Worker, LeaseRequest, SessionRequest>;
type PoolEffect = Effect<Worker, LeaseRequest, SessionRequest>;

/// What a pool is asked for.
#[derive(Debug)]
pub(super) enum Request {
    Lease(Owner, LeaseRequest),
    Session(SessionRequest),
}

impl Ends for Worker {
    /// An idle worker can be killed by anyone who may.
    fn has_ended(&self) -> bool {
        !self.process.is_alive()
    }
}

impl<T> Ends for oneshot::Sender<T> {
    fn has_ended(&self) -> bool {
        self.is_closed()
    }
}

/// Owns all I/O of a pool.
struct Driver {
    language: &'static str,
    state: State<Worker, LeaseRequest, SessionRequest>,
    launch: Arc<Launch>,
    /// Those that have started and are not retired, by their generations.
    zygotes: HashMap<u32, ZygoteHandle>,
    /// Forks that each may owe.
    forks_max: usize,
    places: Places,
    reports: mpsc::Sender<(u32, Report)>,
    prepared: watch::Sender<Option<Start>>,
    figures: SharedFigures,
}

/// Starts the task. It ends when nobody can ask for anything any more.
pub(super) fn start(
    settings: PoolSettings,
    control_groups: Groups,
    prepared: watch::Sender<Option<Start>>,
    figures: SharedFigures,
) -> mpsc::Sender<Request> {
    let PoolSettings { language, zygote, idle, running_max, queue, recycle_after, recycle_age } = settings;
    let bounds = Bounds { idle, running_max, queue, recycle_after, recycle_age };
    let (requests, asked) = mpsc::channel(REQUESTS_MAX);
    let (reports, reported) = mpsc::channel(REPORTS_MAX);
    let (places, released) = Places::new(running_max);
    let driver = Driver {
        language,
        state: State::new(bounds, Instant::now()),
        launch: Arc::new(Launch { command: zygote, control_groups }),
        zygotes: HashMap::new(),
        forks_max: bounds.forks_max(),
        places,
        reports,
        prepared,
        figures,
    };
    tokio::spawn(driver.drive(asked, released, reported));
    requests
}

impl Driver {
    async fn drive(
        mut self,
        mut asked: mpsc::Receiver<Request>,
        mut released: mpsc::Receiver<Released>,
        mut reported: mpsc::Receiver<(u32, Report)>,
    ) {
        self.hear(Event::Begin);
        loop {
            let wake_at = self.state.wake_at(Instant::now());
            let event = tokio::select! {
                // A place that is free is known before somebody asks for one.
                biased;
                Some(Released { owner, held }) = released.recv() => Event::Released(owner, held),
                Some((generation, report)) = reported.recv() => self.event_of(generation, report),
                request = asked.recv() => match request {
                    Some(Request::Lease(owner, request)) => Event::Lease(owner, request),
                    Some(Request::Session(request)) => Event::Session(request),
                    None => return,
                },
                () = async { match wake_at { Some(at) => sleep_until(at).await, None => pending().await } } => {
                    Event::Woken
                }
            };
            self.hear(event);
            self.figures.set(self.state.figures(), self.state.zygote_started());
        }
    }

    fn hear(&mut self, event: PoolEvent) {
        for effect in self.state.on(event, Instant::now()) {
            self.perform(effect);
        }
    }

    /// What a report says to the state; its descriptors and texts stay here.
    fn event_of(&mut self, generation: u32, report: Report) -> PoolEvent {
        match report {
            Report::Started(zygote, prepared) => {
                self.prepared.send_replace(Some(Ok(prepared)));
                self.zygotes.insert(generation, zygote);
                Event::ZygoteStarted { generation }
            }
            Report::NotStarted(error) => Event::ZygoteNotStarted(error),
            Report::Forked(worker, purpose) => Event::Forked { generation, purpose, worker },
            Report::Crashed => Event::Crashed { generation },
            Report::Gone(error) => Event::ZygoteGone { generation, error },
        }
    }

    fn perform(&mut self, effect: PoolEffect) {
        match effect {
            Effect::Lease { owner, to, worker } => {
                // A lease that nobody takes any more gives its place back as it is dropped.
                let _ = to.send(Ok(Lease::new(worker, self.places.take(owner))));
            }
            Effect::HandOver { to, worker } => drop(to.send(Ok(worker))),
            Effect::End(worker) => drop(worker),
            Effect::QueueFull { to, waiting, retry_after } => {
                let _ = to.send(Err(PoolError::QueueFull { waiting, retry_after }));
            }
            Effect::Refuse { leases, sessions, reason } => {
                for to in leases {
                    let _ = to.send(Err(PoolError::Refused(reason.clone())));
                }
                for to in sessions {
                    let _ = to.send(Err(PoolError::Refused(reason.clone())));
                }
            }
            Effect::StartZygote { generation, reason } => {
                telemetry::zygote_started(self.language, reason);
                let reporter = Reporter::new(generation, self.reports.clone());
                tokio::spawn(zygote::run(self.launch.clone(), self.forks_max, reporter));
            }
            Effect::Retire { generation } => drop(self.zygotes.remove(&generation)),
            Effect::Fork { generation, warm, for_runs, for_sessions } => {
                let Some(zygote) = self.zygotes.get(&generation) else { return };
                (0..for_sessions).for_each(|_| zygote.fork(false, Purpose::Session));
                (0..for_runs).for_each(|_| zygote.fork(warm, Purpose::Execution));
                telemetry::forked(self.language, for_runs + for_sessions);
            }
            Effect::Failed(error) => tracing::warn!("{error}"),
            Effect::NotReplaced(error) => {
                tracing::warn!("a new zygote could not be started, the old one goes on: {error}");
            }
            Effect::NoZygote(error) => {
                self.prepared.send_replace(Some(Err(Arc::new(error))));
            }
        }
    }
}
