//! Runs, between the requests of their clients.
//!
//! A request follows its run to the answer, for as long as a client can be expected to wait. Then the run goes on without a
//! request: the client has a handle to it, and any later request of the same owner follows it again, or finds its answer.

mod follow;
mod run;
mod suspended;
mod tasks;

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::principal::Owner;
use lockhouse_engine::supervisor::{RunSettings, Supervisor};
use lockhouse_gate::results::Results;
use lockhouse_protocol::ResultHandle;
use rmcp::model::CallToolResult;
use serde_json::json;

pub(super) use follow::{Tool, handle};
use run::{Over, Run, Step};
use suspended::Suspended;
pub(super) use suspended::new_handle;

/// The runs of all clients of a door. Copies are the same ones.
#[derive(Clone)]
pub(super) struct Runs {
    supervisor: Arc<Supervisor>,
    suspended: Suspended,
    background: Arc<Mutex<HashMap<ResultHandle, Run>>>,
}

/// What a handle stands for.
enum Found {
    Run(Run),
    Over(Box<Over>),
}

impl Runs {
    pub(super) fn new(supervisor: Arc<Supervisor>) -> Self {
        Self { supervisor, suspended: Suspended::default(), background: Arc::default() }
    }

    /// Lets a run go on without a request. None if there are too many of them, or its answer would have no place.
    fn keep(&self, run: &Run) -> Option<ResultHandle> {
        let RunSettings { background, background_of_one, .. } = self.supervisor.settings().runs;
        let mut runs = self.background();
        let own = runs.values().filter(|other| other.owner() == run.owner()).count();
        if runs.len() >= background || own >= background_of_one || !self.supervisor.results().keeps_answers()
        {
            return None;
        }
        let handle = Results::handle()?;
        runs.insert(handle.clone(), run.clone());
        let (runs, owner, over, name) = (self.clone(), run.owner(), run.over(), handle.clone());
        tokio::spawn(async move {
            let over = over.await;
            runs.keep_answer(owner, &name, over.as_deref());
            // Only now, so that its handle always stands for something.
            runs.background().remove(&name);
        });
        Some(handle)
    }

    fn keep_answer(&self, owner: Owner, handle: &ResultHandle, over: Option<&Over>) {
        let results = self.supervisor.results();
        let keep = |over: &Over| match serde_json::to_string(over) {
            Ok(json) => results.keep_answer(owner, handle, &json),
            Err(_) => false,
        };
        let broken = || Over {
            cancelled: false,
            begun: String::new(),
            ended: String::new(),
            result: super::invalid("the execution broke"),
        };
        let kept = match over {
            Some(over) => keep(over) || keep(&over.in_short()),
            None => keep(&broken()),
        };
        if !kept {
            tracing::warn!("the answer of a run was not kept: [results] keep_mib has no room for it");
        }
    }

    /// What is known by this handle, to its owner alone.
    fn find(&self, owner: Owner, handle: &ResultHandle) -> Option<Found> {
        let live = self.background().get(handle).filter(|run| run.owner() == owner).cloned();
        if let Some(run) = live {
            return Some(Found::Run(run));
        }
        let kept = self.supervisor.results().answer(owner, handle)?;
        serde_json::from_str(&kept).ok().map(Found::Over)
    }

    fn background(&self) -> MutexGuard<'_, HashMap<ResultHandle, Run>> {
        self.background.lock()
    }
}

impl Over {
    /// What is kept of an answer that is too large to be kept.
    fn in_short(&self) -> Self {
        let whole = self.result.structured_content.as_ref();
        let of = |key: &str| whole.and_then(|whole| whole.get(key)).cloned();
        let message = "the run has ended, and its answer is larger than what may be kept";
        let json = json!({
            "execution": of("execution"), "status": "error",
            "error": {"type": "ResultTooLarge", "message": message, "hint": "return less, or print less"},
            "calls": of("calls"), "stats": of("stats"),
        });
        Self {
            cancelled: self.cancelled,
            begun: self.begun.clone(),
            ended: self.ended.clone(),
            result: CallToolResult::structured_error(json),
        }
    }
}
