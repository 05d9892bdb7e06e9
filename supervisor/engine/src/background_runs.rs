//! Runs that continue after their request ended.
//!
//! A request follows its run until the answer comes or its waiting time is over. Then the run continues in the
//! background, and the AI client gets a handle. A later request of the same owner can follow the run again or fetch
//! its answer.

mod run_handle;

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::principal::Owner;
use lockhouse_gate::results::Results;
use lockhouse_messages::{FinishedRun, RunReference};
use lockhouse_protocol::{ExecutionId, ResultHandle};
use lockhouse_upstream::ai_client::RunFollower;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::supervisor::BackgroundRunSettings;
use run_handle::WeakRunHandle;
pub(crate) use run_handle::{RunHandle, RunUpdate};

/// The runs of all AI clients. Clones share one registry.
#[derive(Clone, Debug)]
pub(crate) struct BackgroundRuns(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: BackgroundRunSettings,
    results: Arc<Results>,
    /// All runs that have not ended, found by ID.
    live: Mutex<HashMap<ExecutionId, WeakRunHandle>>,
    /// Background runs, found by handle.
    kept: Mutex<HashMap<ResultHandle, RunHandle>>,
}

/// The result of looking up a background run by its handle or ID.
pub(crate) enum RunLookup {
    Live(RunHandle),
    Ended(Box<FinishedRun>),
}

impl BackgroundRuns {
    pub(crate) fn new(settings: BackgroundRunSettings, results: Arc<Results>) -> Self {
        Self(Arc::new(Shared { settings, results, live: Mutex::default(), kept: Mutex::default() }))
    }

    /// Starts a run in a task of its own, which completes when the future `completion` does. Cancelling `token` ends the run early.
    pub(crate) fn start(
        &self,
        owner: Owner,
        follower: RunFollower,
        token: CancellationToken,
        completion: impl Future<Output = FinishedRun> + Send + 'static,
    ) -> RunHandle {
        let run = RunHandle::start(owner, follower, token, completion);
        let mut live = self.0.live.lock();
        live.retain(|_, run| run.is_alive());
        live.insert(run.execution(), run.downgrade());
        run
    }

    /// Moves a run to the background and returns its handle. Returns `None` if there are too many background runs, or
    /// if answers cannot be stored.
    pub(crate) fn keep(&self, run: &RunHandle) -> Option<ResultHandle> {
        let BackgroundRunSettings { background, background_per_client, .. } = self.0.settings;
        let mut kept = self.0.kept.lock();
        let own = kept.values().filter(|other| other.owner() == run.owner()).count();
        if kept.len() >= background || own >= background_per_client || !self.0.results.stores_answers() {
            return None;
        }
        let handle = Results::generate_handle()?;
        kept.insert(handle.clone(), run.clone());
        let (runs, owner, finished, name) = (self.clone(), run.owner(), run.finished(), handle.clone());
        let execution = run.execution();
        tokio::spawn(async move {
            let finished = finished.await;
            runs.keep_answer(
                owner,
                &name,
                finished.as_deref().cloned().unwrap_or_else(|| failed_run(execution)),
            );
            // Removed after the answer was stored, so that the handle is valid at any time.
            runs.0.kept.lock().remove(&name);
        });
        Some(handle)
    }

    fn keep_answer(&self, owner: Owner, handle: &ResultHandle, ended: FinishedRun) {
        let keep = |ended: &FinishedRun| match serde_json::to_string(ended) {
            Ok(json) => self.0.results.store_answer(owner, handle, &json),
            Err(_) => false,
        };
        if !(keep(&ended) || keep(&ended.without_result())) {
            tracing::warn!(
                "the answer of a background run was dropped: it exceeds the free space of `[results] keep_mib`"
            );
        }
    }

    /// Looks up a run or its stored answer. Only the owner of the run finds it.
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
        let kept = self.0.results.answer(owner, handle)?;
        serde_json::from_str(&kept).ok().map(RunLookup::Ended)
    }
}

/// The answer that is stored for a run whose task failed.
fn failed_run(execution: ExecutionId) -> FinishedRun {
    let error = json!({"type": "InvalidRequest", "message": "the execution failed inside Lockhouse"});
    let json = json!({"status": "error", "error": error});
    let (begun, ended) = (String::new(), String::new());
    FinishedRun { execution, cancelled: false, is_error: true, begun, ended, json, files: Vec::new() }
}
