//! Background runs: runs of submitted code that continue after the request that started them was answered.
//!
//! A request waits for its run until the run ends or a configured time is over. If the time is over, the run continues
//! in the background, and the AI client gets a handle. With the handle, a later request of the same owner can wait for
//! the run again or fetch its answer.

mod known_requests;
mod run_handle;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use lockhouse_messages::{FinishedRun, Owner, RequestId, RunReference};
use lockhouse_protocol::{ExecutionId, ResultHandle};
use lockhouse_run_channel::RunFollower;
use lockhouse_stores::results::Results;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::execution::RenderedAnswer;
use crate::supervisor::BackgroundRunSettings;
pub(crate) use known_requests::RequestDigest;
use known_requests::{KnownRequest, KnownRequests, Recognition};
use run_handle::WeakRunHandle;
pub(crate) use run_handle::{RunHandle, RunUpdate};

/// The registry of the runs of all AI clients, in the foreground and in the background. Clones share one registry.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundRuns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: BackgroundRunSettings,
    results: Arc<Results>,
    /// The runs to which a [`RunHandle`] still exists, by execution ID. The weak handles here do not keep a run alive.
    live: Mutex<HashMap<ExecutionId, WeakRunHandle>>,
    /// The runs that were moved to the background, by the handle that the AI client got.
    kept: Mutex<HashMap<ResultHandle, RunHandle>>,
    known_requests: Mutex<KnownRequests>,
}

/// What happens to a request that could have effects.
pub(crate) enum Admission {
    /// It is carried out.
    New,
    /// It was begun before: this is its run.
    Run(RunLookup),
    /// It was begun before, and its answer is not stored. Or another request has its id. The text says so.
    Refused(&'static str),
}

/// The result of looking up a run by its handle or execution ID.
pub(crate) enum RunLookup {
    /// The run to which a handle still exists: it is active, or has ended very recently.
    Live(RunHandle),
    /// The stored answer of a background run that has ended.
    Ended(Arc<FinishedRun>),
}

impl BackgroundRuns {
    pub(crate) fn new(settings: BackgroundRunSettings, results: Arc<Results>) -> Self {
        let known_requests = Mutex::new(KnownRequests::new(results.lifetime()));
        Self(Arc::new(Shared {
            settings,
            results,
            live: Mutex::default(),
            kept: Mutex::default(),
            known_requests,
        }))
    }

    /// Decides whether a request that could have effects is carried out. `digest` is that of a request whose id its AI
    /// client chose.
    pub(crate) fn admit(&self, owner: Owner, id: RequestId, digest: Option<RequestDigest>) -> Admission {
        let recognition = self.0.known_requests.lock().recognise(owner, id, digest, Instant::now());
        let known = match recognition {
            Recognition::New => return Admission::New,
            Recognition::Conflict => {
                return Admission::Refused(
                    "the Idempotency-Key of this request was used for another request; use a new one",
                );
            }
            Recognition::Repeated(known) => known,
        };
        match self.find_known(owner, &known) {
            Some(run) => Admission::Run(run),
            None => Admission::Refused(
                "this request was carried out before, and its answer is not stored; check its effects before you repeat it \
                 with a new Idempotency-Key",
            ),
        }
    }

    /// Records the run that an admitted request started. If its AI client chose the id, the run continues without followers,
    /// and its answer is stored.
    pub(crate) fn set_run_of(&self, owner: Owner, id: RequestId, run: &RunHandle, is_chosen: bool) {
        let handle = if is_chosen { self.keep(run) } else { None };
        self.0.known_requests.lock().set_run(owner, id, run.execution(), handle);
    }

    /// Forgets the requests of an owner that cannot come back.
    pub(crate) fn forget(&self, owner: Owner) {
        self.0.known_requests.lock().forget(owner);
    }

    fn find_known(&self, owner: Owner, known: &KnownRequest) -> Option<RunLookup> {
        let stored = known.handle.clone().and_then(|handle| self.find(owner, &RunReference::Handle(handle)));
        stored.or_else(|| self.find(owner, &RunReference::Execution(known.execution?)))
    }

    /// Starts a run as a task of its own. The run ends when the future `completion` completes. `follower` receives the
    /// questions and the progress of the run. Cancelling `token` ends the run early.
    pub(crate) fn start(
        &self,
        owner: Owner,
        follower: RunFollower,
        token: CancellationToken,
        completion: impl Future<Output = RenderedAnswer> + Send + 'static,
    ) -> RunHandle {
        let run = RunHandle::start(owner, follower, token, completion);
        let mut live = self.0.live.lock();
        live.retain(|_, run| run.is_alive());
        live.insert(run.execution(), run.downgrade());
        run
    }

    /// Moves a run to the background and returns its handle. Returns `None` if there are too many background runs, or
    /// if the answers of background runs cannot be stored.
    pub(crate) fn keep(&self, run: &RunHandle) -> Option<ResultHandle> {
        let BackgroundRunSettings { background, background_per_client, .. } = self.0.settings;
        let mut kept = self.0.kept.lock();
        if let Some((handle, _)) = kept.iter().find(|(_, other)| other.execution() == run.execution()) {
            return Some(handle.clone());
        }
        let own = kept.values().filter(|other| other.owner() == run.owner()).count();
        if kept.len() >= background || own >= background_per_client || !self.0.results.stores_answers() {
            return None;
        }
        let handle = Results::generate_handle()?;
        kept.insert(handle.clone(), run.clone());
        let (runs, owner, finished, name) = (self.clone(), run.owner(), run.finished(), handle.clone());
        let failed = run.failed();
        tokio::spawn(async move {
            let finished = finished.await;
            runs.keep_answer(owner, &name, finished.as_deref().unwrap_or(&failed));
            // Removed after the answer was stored, so that the handle is valid at any time.
            runs.0.kept.lock().remove(&name);
        });
        Some(handle)
    }

    fn keep_answer(&self, owner: Owner, handle: &ResultHandle, ended: &FinishedRun) {
        let keep = |ended: &FinishedRun| match serde_json::to_string(ended) {
            Ok(json) => self.0.results.store_answer(owner, handle, &json),
            Err(_) => false,
        };
        if !(keep(ended) || keep(&ended.without_result())) {
            tracing::warn!(
                "the answer of a background run was dropped: it exceeds the free space of `[results] keep_mib`"
            );
        }
    }

    /// Looks up a run by its handle or execution ID, or by the id that the AI client chose for its request. An ended run is
    /// found only by its handle or the chosen id, and only if its answer was stored. Returns `None` if there is no such run or it belongs to another owner.
    pub(crate) fn find(&self, owner: Owner, name: &RunReference) -> Option<RunLookup> {
        let live = match name {
            RunReference::Execution(execution) => {
                self.0.live.lock().get(execution).and_then(WeakRunHandle::upgrade)
            }
            RunReference::Handle(handle) => self.0.kept.lock().get(handle).cloned(),
        };
        if let Some(run) = live.filter(|run| run.owner() == owner) {
            return Some(RunLookup::Live(run));
        }
        let RunReference::Handle(handle) = name else { return None };
        if let Some(kept) = self.0.results.answer(owner, handle) {
            return serde_json::from_str(&kept).ok().map(Arc::new).map(RunLookup::Ended);
        }
        let id = RequestId::parse(handle.as_str())?;
        let known = self.0.known_requests.lock().find(owner, id).cloned()?;
        self.find_known(owner, &known)
    }
}
