//! The runs of submitted code: the active runs, which operators list and end; the quotas of each AI client; and the runs
//! that continue in the background after the request that started them was answered.
//!
//! A request waits for its run until the run ends or a configured time is over. If the time is over, the run continues
//! in the background, and the AI client gets a handle. With the handle, a later request of the same owner can wait for
//! the run again or fetch its answer.

mod active_run;
mod known_requests;
mod run_handle;
mod run_table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_cluster::LeasedRates;
use lockhouse_messages::{FinishedRun, Owner, RequestId, RunListing, RunReference};
use lockhouse_pool::process_usage;
use lockhouse_protocol::{ExecutionId, ResultHandle};
use lockhouse_run_channel::RunFollower;
use lockhouse_stores::results::Results;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::client_quotas::{ClientLimits, ClientQuotas, QuotaExceeded};
use crate::execution::{Cancellation, RenderedAnswer, StopHandle};
use crate::supervisor::BackgroundRunSettings;
pub(crate) use active_run::ActiveRun;
pub(crate) use known_requests::RequestDigest;
use known_requests::{KnownRequest, KnownRequests, Recognition};
pub(crate) use run_handle::{RunHandle, RunUpdate};
use run_table::RunTable;

/// The registry of the runs of this process. Clones share one registry.
#[derive(Clone, Debug)]
pub(crate) struct Runs(Arc<RunsInner>);

#[derive(Debug)]
struct RunsInner {
    results: Arc<Results>,
    /// The lock is held for single operations only, never across an await.
    table: Mutex<RunTable>,
}

/// Keeps a run in the registry of active runs. Dropping the guard removes the run from the registry, and from the runs
/// that count towards the quotas of its AI client.
#[derive(Debug)]
pub(crate) struct ActiveRunGuard {
    runs: Runs,
    execution: ExecutionId,
    /// The owner towards whose quotas the run counts.
    admitted: Option<Owner>,
    /// The handle with which the run's AI client or an operator stops the run.
    pub(crate) stop: StopHandle,
}

impl ActiveRunGuard {
    /// Admits the run under the quotas of its owner, as [`ClientQuotas::admit_run`] does.
    pub(crate) fn admit(&mut self, owner: Owner) -> Result<Arc<Semaphore>, QuotaExceeded> {
        let places = self.runs.0.table.lock().quotas.admit_run(owner)?;
        self.admitted = Some(owner);
        Ok(places)
    }
}

impl Drop for ActiveRunGuard {
    fn drop(&mut self) {
        let mut table = self.runs.0.table.lock();
        table.active.remove(&self.execution);
        if let Some(owner) = self.admitted {
            table.quotas.end_run(owner);
        }
    }
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

impl Runs {
    pub(crate) fn new(settings: BackgroundRunSettings, limits: ClientLimits, results: Arc<Results>) -> Self {
        let table = Mutex::new(RunTable {
            settings,
            quotas: ClientQuotas::new(limits),
            known_requests: KnownRequests::new(results.lifetime()),
            active: BTreeMap::new(),
            live: HashMap::new(),
            kept: HashMap::new(),
        });
        Self(Arc::new(RunsInner { results, table }))
    }

    /// Lets the rates of clients hold for all hosts of a cluster together.
    pub(crate) fn share_rates(&self, rates: LeasedRates) {
        self.0.table.lock().quotas.share(rates);
    }

    pub(crate) fn register(&self, execution: ExecutionId, run: ActiveRun) -> ActiveRunGuard {
        let stop = run.stop.clone();
        self.0.table.lock().active.insert(execution, run);
        ActiveRunGuard { runs: self.clone(), execution, admitted: None, stop }
    }

    /// Adds the process of its worker to an active run.
    pub(crate) fn set_worker(&self, execution: ExecutionId, pid: i32) {
        if let Some(run) = self.0.table.lock().active.get_mut(&execution) {
            run.worker = Some(pid);
        }
    }

    /// Lists the active runs, ordered by the time of their request.
    pub(crate) fn list(&self) -> Vec<RunListing> {
        let active = |(id, run): (&ExecutionId, &ActiveRun)| run.listing(*id);
        let mut runs: Vec<RunListing> = self.0.table.lock().active.iter().map(active).collect();
        for run in &mut runs {
            let usage = run.worker.map(process_usage).unwrap_or_default();
            run.cpu_ms = usage.cpu.map(|cpu| cpu.as_micros() as f64 / 1000.0);
            run.memory_bytes = usage.memory_bytes;
        }
        runs
    }

    /// Stops the run with this execution ID, or all runs if `execution` is `None`, for the cause `why`. Returns the
    /// execution IDs of the stopped runs.
    pub(crate) fn end(&self, execution: Option<&str>, why: &Cancellation) -> Vec<String> {
        let table = self.0.table.lock();
        let runs = table.active.iter().map(|(id, run)| (id.to_string(), run));
        let selected = runs.filter(|(id, _)| execution.is_none_or(|execution| execution == id));
        selected
            .map(|(id, run)| {
                run.stop.stop(why.clone());
                id
            })
            .collect()
    }

    /// Stops all runs of this owner for the cause `why`.
    pub(crate) fn end_of(&self, owner: Owner, why: &Cancellation) {
        let table = self.0.table.lock();
        table.active.values().filter(|run| run.owner == owner).for_each(|run| run.stop.stop(why.clone()));
    }

    /// Returns what [`ClientQuotas::cpu_credit`] returns.
    pub(crate) fn cpu_credit(&self, owner: Owner) -> Option<Duration> {
        self.0.table.lock().quotas.cpu_credit(owner)
    }

    /// Deducts the CPU time that a run has used from the CPU credit of its AI client.
    pub(crate) fn charge_cpu(&self, owner: Owner, used: Duration) {
        self.0.table.lock().quotas.charge_cpu(owner, used);
    }

    /// Decides whether a request that could have effects is carried out. `digest` is that of a request whose id its AI
    /// client chose.
    pub(crate) fn admit(&self, owner: Owner, id: RequestId, digest: Option<RequestDigest>) -> Admission {
        let recognition = self.0.table.lock().known_requests.recognise(owner, id, digest, Instant::now());
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
        self.0.table.lock().known_requests.set_run(owner, id, run.execution(), handle);
    }

    /// Forgets the requests of an owner that cannot come back.
    pub(crate) fn forget(&self, owner: Owner) {
        self.0.table.lock().known_requests.forget(owner);
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
        self.0.table.lock().add_live(&run);
        run
    }

    /// Moves a run to the background and returns its handle. Returns `None` if there are too many background runs, or
    /// if the answers of background runs cannot be stored.
    pub(crate) fn keep(&self, run: &RunHandle) -> Option<ResultHandle> {
        let mut table = self.0.table.lock();
        if let Some(handle) = table.handle_of(run.execution()) {
            return Some(handle);
        }
        if !table.has_background_place(run.owner()) || !self.0.results.stores_answers() {
            return None;
        }
        let handle = Results::generate_handle()?;
        table.kept.insert(handle.clone(), run.clone());
        drop(table);
        let (runs, owner, finished, name) = (self.clone(), run.owner(), run.finished(), handle.clone());
        let failed = run.failed();
        tokio::spawn(async move {
            let finished = finished.await;
            runs.keep_answer(owner, &name, finished.as_deref().unwrap_or(&failed));
            // Removed after the answer was stored, so that the handle is valid at any time.
            runs.0.table.lock().kept.remove(&name);
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
        if let Some(run) = self.0.table.lock().find_live(owner, name) {
            return Some(RunLookup::Live(run));
        }
        let RunReference::Handle(handle) = name else { return None };
        if let Some(kept) = self.0.results.answer(owner, handle) {
            return serde_json::from_str(&kept).ok().map(Arc::new).map(RunLookup::Ended);
        }
        let id = RequestId::parse(handle.as_str())?;
        let known = self.0.table.lock().known_requests.find(owner, id).cloned()?;
        self.find_known(owner, &known)
    }
}
