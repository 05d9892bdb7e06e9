//! Runs, between the requests of their clients.
//!
//! A request follows its run to the answer, for as long as a client can be expected to wait. Then the run goes on without a
//! request: the client has a handle to it, and any later request of the same owner follows it again, or finds its answer.

mod run;

use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::principal::Owner;
use lockhouse_gate::results::Results;
use lockhouse_messages::{EndedRun, RunName};
use lockhouse_protocol::{ExecutionId, ResultHandle};
use lockhouse_upstream::ai_client::Followed;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::supervisor::RunSettings;
use run::WeakRun;
pub(crate) use run::{Run, Step};

/// The runs of all clients. Copies are the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Runs(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: RunSettings,
    results: Arc<Results>,
    /// Those that somebody follows or that are kept.
    live: Mutex<HashMap<ExecutionId, WeakRun>>,
    /// Those that go on without a request.
    kept: Mutex<HashMap<ResultHandle, Run>>,
}

/// What a name stands for.
pub(crate) enum Found {
    Run(Run),
    Ended(Box<EndedRun>),
}

impl Runs {
    pub(crate) fn new(settings: RunSettings, results: Arc<Results>) -> Self {
        Self(Arc::new(Shared { settings, results, live: Mutex::default(), kept: Mutex::default() }))
    }

    /// Follows what `answering` does, which ends early once `token` is cancelled.
    pub(crate) fn start(
        &self,
        owner: Owner,
        followed: Followed,
        token: CancellationToken,
        answering: impl Future<Output = EndedRun> + Send + 'static,
    ) -> Run {
        let run = Run::start(owner, followed, token, answering);
        let mut live = self.0.live.lock();
        live.retain(|_, run| run.is_alive());
        live.insert(run.execution(), run.downgrade());
        run
    }

    /// Lets a run go on without a request. None if there are too many of them, or its answer would have no place.
    pub(crate) fn keep(&self, run: &Run) -> Option<ResultHandle> {
        let RunSettings { background, background_of_one, .. } = self.0.settings;
        let mut kept = self.0.kept.lock();
        let own = kept.values().filter(|other| other.owner() == run.owner()).count();
        if kept.len() >= background || own >= background_of_one || !self.0.results.keeps_answers() {
            return None;
        }
        let handle = Results::handle()?;
        kept.insert(handle.clone(), run.clone());
        let (runs, owner, over, name) = (self.clone(), run.owner(), run.over(), handle.clone());
        let execution = run.execution();
        tokio::spawn(async move {
            let over = over.await;
            runs.keep_answer(owner, &name, over.as_deref().cloned().unwrap_or_else(|| broken(execution)));
            // Only now, so that its handle always stands for something.
            runs.0.kept.lock().remove(&name);
        });
        Some(handle)
    }

    fn keep_answer(&self, owner: Owner, handle: &ResultHandle, ended: EndedRun) {
        let keep = |ended: &EndedRun| match serde_json::to_string(ended) {
            Ok(json) => self.0.results.keep_answer(owner, handle, &json),
            Err(_) => false,
        };
        if !(keep(&ended) || keep(&ended.in_short())) {
            tracing::warn!("the answer of a run was not kept: [results] keep_mib has no room for it");
        }
    }

    /// What is known by this name, to its owner alone.
    pub(crate) fn find(&self, owner: Owner, name: &RunName) -> Option<Found> {
        let live = match name {
            RunName::Execution(execution) => self.0.live.lock().get(execution).and_then(WeakRun::upgrade),
            RunName::Handle(handle) => self.0.kept.lock().get(handle).cloned(),
        };
        if let Some(run) = live.filter(|run| run.owner() == owner) {
            return Some(Found::Run(run));
        }
        let RunName::Handle(handle) = name else { return None };
        let kept = self.0.results.answer(owner, handle)?;
        serde_json::from_str(&kept).ok().map(Found::Ended)
    }
}

/// What is kept of a run whose task failed.
fn broken(execution: ExecutionId) -> EndedRun {
    let error = json!({"type": "InvalidRequest", "message": "the execution broke"});
    let json = json!({"status": "error", "error": error});
    let (begun, ended) = (String::new(), String::new());
    EndedRun { execution, cancelled: false, is_error: true, begun, ended, json, files: Vec::new() }
}
