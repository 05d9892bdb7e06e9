//! An active run, as operators list it.

use std::time::{Duration, Instant};

use lockhouse_messages::{Owner, RunListing};
use lockhouse_policies::ClientName;
use lockhouse_protocol::{ExecutionId, Language};
use lockhouse_run_channel::{OpenQuestions, RunStarted};

use crate::execution::StopHandle;

/// A run from its request to its answer.
#[derive(Debug)]
pub(crate) struct ActiveRun {
    pub(crate) owner: Owner,
    pub(crate) client: Option<ClientName>,
    pub(crate) language: Language,
    pub(crate) session: Option<String>,
    pub(crate) requested_at: Instant,
    pub(crate) started: RunStarted,
    pub(crate) questions: OpenQuestions,
    pub(crate) stop: StopHandle,
    /// The process id of the worker. `None` while the run waits for a worker.
    pub(crate) worker: Option<i32>,
}

impl ActiveRun {
    /// Describes the run for operators, without the resources that its worker uses.
    pub(super) fn listing(&self, execution: ExecutionId) -> RunListing {
        let seconds = |duration: Duration| duration.as_millis() as f64 / 1000.0;
        let person = self.questions.oldest();
        let state = match (self.started.get(), &person) {
            (false, _) => "waiting",
            (true, None) => "running",
            (true, Some(_)) => "waiting for a person",
        };
        RunListing {
            execution: execution.to_string(),
            client: self.client.as_ref().map(|client| client.as_str().to_owned()),
            language: self.language.as_str().into(),
            session: self.session.clone(),
            state: state.into(),
            waiting_for: person.as_ref().map(|person| person.reason.clone()),
            waiting_s: person.map(|person| seconds(person.since)),
            age_s: seconds(self.requested_at.elapsed()),
            worker: self.worker,
            cpu_ms: None,
            memory_bytes: None,
        }
    }
}
