//! Requests that were answered with a question: their runs, until the client calls again with what the person said.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use lockhouse_base::principal::{Owner, Principal};
use rmcp::model::{InputRequiredResult, InputResponses, JsonObject};

use super::run::Run;

/// Requests whose client is to call again, at one time; and those of one client.
const SUSPENDED_MAX: usize = 256;
const OF_ONE_MAX: usize = 16;

/// Runs whose client was asked something and is to call again.
#[derive(Clone, Default)]
pub(super) struct Suspended {
    requests: Arc<Mutex<HashMap<String, Waiting>>>,
}

struct Waiting {
    /// Whoever else comes with its handle finds nothing.
    owner: Owner,
    run: Run,
    /// Of the questions that were put.
    keys: Vec<String>,
    /// A call that comes back is the same call.
    arguments: JsonObject,
}

impl Suspended {
    /// Whether one more of this owner's can wait.
    pub(super) fn has_room(&self, owner: Owner) -> bool {
        let requests = self.requests();
        let own = requests.values().filter(|waiting| waiting.owner == owner).count();
        requests.len() < SUSPENDED_MAX && own < OF_ONE_MAX
    }

    /// Keeps a run until its client comes back, or the time for its questions is up; one that nobody else keeps is then
    /// cancelled. None if nothing is asked any more.
    pub(super) fn keep(&self, run: &Run, arguments: &JsonObject) -> Option<InputRequiredResult> {
        let (asked, until) = run.asked()?;
        let (name, arguments) = (new_handle(), arguments.clone());
        let keys = asked.keys().cloned().collect();
        let waiting = Waiting { owner: run.owner(), run: run.clone(), keys, arguments };
        self.requests().insert(name.clone(), waiting);
        let (requests, to_end) = (self.clone(), name.clone());
        tokio::spawn(async move {
            tokio::time::sleep_until(until.into()).await;
            requests.requests().remove(&to_end);
        });
        Some(InputRequiredResult::new(Some(asked), Some(name)))
    }

    /// The run that a client comes back to, with what the person said handed over.
    pub(super) fn resume(
        &self,
        principal: &Principal,
        state: &str,
        arguments: &JsonObject,
        responses: InputResponses,
    ) -> Result<Run, &'static str> {
        let mut requests = self.requests();
        let own = |waiting: &&Waiting| waiting.owner == principal.owner();
        let waiting = requests.get(state).filter(own).ok_or(
            "nothing waits for this answer: it came too late, or twice. The execution is over; run the code again",
        )?;
        if waiting.arguments != *arguments {
            return Err("an answer comes with the same arguments as the call that it is for");
        }
        let Some(Waiting { run, keys, .. }) = requests.remove(state) else { return Err("it is gone") };
        run.answered_with(&keys, responses);
        Ok(run)
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.requests.lock()
    }
}

/// More than anybody guesses: 148 bits of the kernel's randomness.
pub(crate) fn new_handle() -> String {
    format!("{}{}", uuid::Uuid::now_v7().simple(), uuid::Uuid::now_v7().simple())
}
