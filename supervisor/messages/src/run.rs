//! Runs of programs: what is asked, what is seen of one that goes on, and how it ended.

use std::collections::BTreeMap;
use std::time::Duration;

use lockhouse_base::language::Language;
use lockhouse_protocol::ExecutionId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::PersonWait;

/// A program to be run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunCode {
    pub language: Language,
    pub code: String,
    /// Shorter or longer than the default, never longer than the configured maximum.
    pub timeout: Option<Duration>,
    /// Only these servers, or of a server only these tools: `NAME`, `NAME.TOOL` and `NAME.BEGINNING*`.
    pub servers: Option<Vec<String>>,
    /// The name of the session whose next run it is, or which it begins.
    pub session: Option<String>,
}

/// What a run is doing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Course {
    /// Since its worker has the code.
    pub elapsed: Duration,
    /// That have their answer.
    pub calls: usize,
    /// How many have none yet, by what they are asked of.
    pub under_way: BTreeMap<String, usize>,
    /// What it waits for that a person decides.
    pub person: Option<PersonWait>,
    /// The end of what it printed.
    pub stdout: String,
}

/// A run that goes on, as one who follows it sees it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunView {
    pub execution: ExecutionId,
    /// Since it was asked for.
    pub age: Duration,
    /// When it was asked for, as in RFC 3339.
    pub begun: String,
    pub state: RunState,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RunState {
    /// It waits for a worker.
    Queued,
    Running(Course),
    /// It has a worker, and does not say what it does: it is ending.
    Silent,
}

impl RunView {
    /// What it does, if it says so.
    pub fn course(&self) -> Option<&Course> {
        match &self.state {
            RunState::Running(course) => Some(course),
            RunState::Queued | RunState::Silent => None,
        }
    }
}

/// The final answer of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndedRun {
    pub execution: ExecutionId,
    /// Whether it was given up.
    pub cancelled: bool,
    pub is_error: bool,
    /// When it was asked for and when it ended, as in RFC 3339.
    pub begun: String,
    pub ended: String,
    /// What is shown of the answer.
    pub json: Value,
    /// What was taken out of the value, in the order of the numbers that stand for it, from 1 on.
    pub files: Vec<File>,
}

impl EndedRun {
    /// What is kept of an answer that is too large to be kept.
    pub fn in_short(&self) -> Self {
        let of = |key: &str| self.json.get(key).cloned();
        let message = "the run has ended, and its answer is larger than what may be kept";
        let json = json!({
            "execution": of("execution"), "status": "error",
            "error": {"type": "ResultTooLarge", "message": message, "hint": "return less, or print less"},
            "calls": of("calls"), "stats": of("stats"),
        });
        let (begun, ended) = (self.begun.clone(), self.ended.clone());
        let (execution, cancelled) = (self.execution, self.cancelled);
        Self { execution, cancelled, is_error: true, begun, ended, json, files: Vec::new() }
    }
}

/// A file that was taken out of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub base64: String,
    pub mime_type: String,
    pub name: Option<String>,
}
