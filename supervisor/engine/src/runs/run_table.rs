//! The facts about the runs of this process, which have one owner: [`Runs`](super::Runs) holds the table behind one
//! lock. The table does no I/O.

use std::collections::{BTreeMap, HashMap};

use lockhouse_messages::{Owner, RunReference};
use lockhouse_protocol::{ExecutionId, ResultHandle};

use super::active_run::ActiveRun;
use super::known_requests::KnownRequests;
use super::run_handle::{RunHandle, WeakRunHandle};
use crate::client_quotas::ClientQuotas;
use crate::supervisor::BackgroundRunSettings;

#[derive(Debug)]
pub(super) struct RunTable {
    pub(super) settings: BackgroundRunSettings,
    pub(super) quotas: ClientQuotas,
    pub(super) known_requests: KnownRequests,
    /// The runs from their request to their answer, in the order of their requests.
    pub(super) active: BTreeMap<ExecutionId, ActiveRun>,
    /// The runs to which a [`RunHandle`] still exists. The weak handles here do not keep a run alive.
    pub(super) live: HashMap<ExecutionId, WeakRunHandle>,
    /// The runs that were moved to the background, by the handle that the AI client got.
    pub(super) kept: HashMap<ResultHandle, RunHandle>,
}

impl RunTable {
    /// Adds a run to which a handle exists, and removes those whose last handle was dropped.
    pub(super) fn add_live(&mut self, run: &RunHandle) {
        self.live.retain(|_, run| run.is_alive());
        self.live.insert(run.execution(), run.downgrade());
    }

    /// Returns the handle of a run that was moved to the background.
    pub(super) fn handle_of(&self, execution: ExecutionId) -> Option<ResultHandle> {
        let mut kept = self.kept.iter();
        kept.find(|(_, run)| run.execution() == execution).map(|(handle, _)| handle.clone())
    }

    /// Returns whether one more run of this owner may be moved to the background.
    pub(super) fn has_background_place(&self, owner: Owner) -> bool {
        let own = self.kept.values().filter(|run| run.owner() == owner).count();
        self.kept.len() < self.settings.background && own < self.settings.background_per_client
    }

    /// Returns the run with this handle or execution ID. Returns `None` if it has ended or belongs to another owner.
    pub(super) fn find_live(&self, owner: Owner, name: &RunReference) -> Option<RunHandle> {
        let run = match name {
            RunReference::Execution(execution) => self.live.get(execution).and_then(WeakRunHandle::upgrade),
            RunReference::Handle(handle) => self.kept.get(handle).cloned(),
        };
        run.filter(|run| run.owner() == owner)
    }
}
