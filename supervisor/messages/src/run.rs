//! Runs of programs: the request, the progress, and the result.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_protocol::ExecutionId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::UserWait;

/// A request to run a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCode {
    pub language: Language,
    pub code: String,
    /// The requested time limit; `None` uses the default. The configured maximum bounds it.
    pub timeout: Option<Duration>,
    /// The servers and tools that the program may use: `NAME`, `NAME.TOOL` or `NAME.PREFIX*`. `None` allows all
    /// permitted ones.
    pub servers: Option<Vec<String>>,
    /// The name of the session that the run continues or starts; `None` for a run outside of sessions.
    pub session: Option<String>,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The time since the worker received the code.
    pub elapsed: Duration,
    /// The number of calls that have been answered.
    pub finished_calls: usize,
    /// The number of calls without an answer, by target.
    pub in_flight: BTreeMap<String, usize>,
    /// The decision of a person that the run waits for; `None` if it waits for none.
    pub waiting_for: Option<UserWait>,
    /// The last part of the program's standard output.
    pub stdout: String,
}

/// A snapshot of a running run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunView {
    pub execution: ExecutionId,
    /// The time since the run was requested.
    pub age: Duration,
    /// When the run was requested, in RFC 3339.
    pub begun: String,
    pub state: RunState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunState {
    /// The run waits for a worker.
    Queued,
    Running(Progress),
    /// The run has a worker but does not report progress: it is ending.
    Ending,
}

impl RunView {
    /// Returns the run's progress, if it reports any.
    pub fn progress(&self) -> Option<&Progress> {
        match &self.state {
            RunState::Running(progress) => Some(progress),
            RunState::Queued | RunState::Ending => None,
        }
    }
}

/// The final result of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FinishedRun {
    pub execution: ExecutionId,
    /// Whether the run was cancelled.
    pub cancelled: bool,
    pub is_error: bool,
    /// When the run was requested, in RFC 3339.
    pub begun: String,
    /// When the run ended, in RFC 3339.
    pub ended: String,
    /// The JSON result as it is shown to the client.
    pub json: Value,
    /// The files that were removed from the value. The placeholders in the value number them from 1.
    pub files: Vec<ResultFile>,
}

impl FinishedRun {
    /// Returns the record that is stored in place of a result that is too large to store.
    pub fn without_result(&self) -> Self {
        let field = |key: &str| self.json.get(key).cloned();
        let message = "the run has ended, but its result is too large to be stored";
        let json = json!({
            "execution": field("execution"), "status": "error",
            "error": {"type": "ResultTooLarge", "message": message, "hint": "return less, or print less"},
            "calls": field("calls"), "stats": field("stats"),
        });
        let (begun, ended) = (self.begun.clone(), self.ended.clone());
        let (execution, cancelled) = (self.execution, self.cancelled);
        Self { execution, cancelled, is_error: true, begun, ended, json, files: Vec::new() }
    }
}

/// A file that was removed from a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultFile {
    pub base64: String,
    pub mime_type: String,
    pub name: Option<String>,
}
