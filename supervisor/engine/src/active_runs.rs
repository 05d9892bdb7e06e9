//! The registry of active runs, with which operators list and end runs.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockhouse_messages::RunListing;
use lockhouse_policies::ClientName;
use lockhouse_pool::process_usage;
use lockhouse_protocol::{ExecutionId, Language};
use lockhouse_run_channel::{OpenQuestions, ProgressRequests, RunStarted};

use crate::execution::{Cancellation, StopHandle};
use crate::sessions::SessionKey;

/// The registry of all active runs of this process. Clones share one registry.
#[derive(Clone, Debug, Default)]
pub struct ActiveRuns(Arc<Mutex<BTreeMap<u128, ActiveRun>>>);

#[derive(Debug)]
struct ActiveRun {
    client: Option<ClientName>,
    language: Language,
    session: Option<String>,
    since: Instant,
    begun: RunStarted,
    questions: OpenQuestions,
    stop: StopHandle,
    /// The process id of the worker. `None` while the run waits for a worker.
    worker: Option<i32>,
}

/// Keeps a run in the registry of active runs. Dropping the guard removes the run from the registry.
#[derive(Debug)]
pub struct ActiveRunGuard {
    execution: ExecutionId,
    active_runs: ActiveRuns,
    /// The handle with which the run's AI client or an operator stops the run.
    pub stop: StopHandle,
}

impl Drop for ActiveRunGuard {
    fn drop(&mut self) {
        self.active_runs.active().remove(&self.execution.0);
    }
}

impl ActiveRuns {
    pub fn register(
        &self,
        execution: ExecutionId,
        client: Option<ClientName>,
        (language, session): (Language, Option<&SessionKey>),
        (progress_requests, questions): (&ProgressRequests, &OpenQuestions),
        stop: StopHandle,
    ) -> ActiveRunGuard {
        let session = session.map(|key| key.name.to_string());
        let (since, begun) = (Instant::now(), progress_requests.started_flag());
        let questions = questions.clone();
        let run = ActiveRun {
            client,
            language,
            session,
            since,
            begun,
            questions,
            stop: stop.clone(),
            worker: None,
        };
        self.active().insert(execution.0, run);
        ActiveRunGuard { execution, active_runs: self.clone(), stop }
    }

    /// Adds the process of its worker to a run.
    pub fn set_worker(&self, execution: ExecutionId, pid: i32) {
        if let Some(run) = self.active().get_mut(&execution.0) {
            run.worker = Some(pid);
        }
    }

    /// Lists the active runs, ordered by the time of their request.
    pub fn list(&self) -> Vec<RunListing> {
        let seconds = |duration: Duration| duration.as_millis() as f64 / 1000.0;
        let listing = |(id, run): (&u128, &ActiveRun)| {
            let person = run.questions.oldest();
            let usage = run.worker.map(process_usage).unwrap_or_default();
            let state = match (run.begun.get(), &person) {
                (false, _) => "waiting",
                (true, None) => "running",
                (true, Some(_)) => "waiting for a person",
            };
            RunListing {
                execution: ExecutionId(*id).to_string(),
                client: run.client.as_ref().map(|client| client.as_str().to_owned()),
                language: run.language.as_str().into(),
                session: run.session.clone(),
                state: state.into(),
                waiting_for: person.as_ref().map(|person| person.reason.clone()),
                waiting_s: person.map(|person| seconds(person.since)),
                age_s: seconds(run.since.elapsed()),
                worker: run.worker,
                cpu_ms: usage.cpu.map(|cpu| cpu.as_micros() as f64 / 1000.0),
                memory_bytes: usage.memory_bytes,
            }
        };
        self.active().iter().map(listing).collect()
    }

    /// Stops the run with this execution ID, or all runs if `execution` is `None`. Returns the execution IDs of the
    /// stopped runs.
    pub fn end(&self, execution: Option<&str>) -> Vec<String> {
        let run = self.active();
        let ids = run.iter().map(|(id, run)| (ExecutionId(*id).to_string(), run));
        let selected = ids.filter(|(id, _)| execution.is_none_or(|execution| execution == id));
        selected
            .map(|(id, run)| {
                run.stop.stop(Cancellation::Person);
                id
            })
            .collect()
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<u128, ActiveRun>> {
        self.0.lock()
    }
}
