//! The answer to a request to run a program. The engine builds it once, within the size limits for its reader. The front and
//! the command line convert it to text and to JSON.

mod error;
mod json;
mod status;

use lockhouse_protocol::{CallOutcome, ExecutionId, ResultHandle};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use error::{ErrorCode, RunError};
pub use json::{AnswerMembers, CutValue};
pub use status::RunStatus;

/// The answer to a request to run a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunAnswer {
    /// The id of the run. `None` if the request did not become a run.
    pub execution: Option<ExecutionId>,
    pub status: RunStatus,
    /// The value that the program returned. `None` if there is no value.
    pub value: Option<ShownValue>,
    /// Advice on how to return a value, for a program that returned none, probably by mistake.
    pub no_value: Option<String>,
    pub stdout: ShownText,
    pub stderr: ShownText,
    pub error: Option<RunError>,
    /// The session of the run. `None` for a run without a session.
    pub session: Option<SessionReport>,
    /// The calls of the run and what it used. `None` if the request did not become a run.
    pub usage: Option<RunUsage>,
    /// The protection of the worker's sandbox. `None` if the run had no worker.
    pub sandbox: Option<Sandbox>,
    /// What the reader of the answer does about a value or output that was cut. `None` if none was.
    pub cut_hint: Option<String>,
    /// The files that are stored for the AI client, and those that were left out.
    pub files: Vec<FileReport>,
}

/// The value of a program, as the answer shows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShownValue {
    /// The value as JSON text without white space, in which each integer beyond ±(2^53 - 1) is a string of its digits.
    /// If the value was cut, this is its beginning and end.
    pub json: Box<RawValue>,
    /// What was cut. `None` if the value is complete.
    pub cut: Option<CutPart>,
}

/// The output of a program, as the answer shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownText {
    pub text: String,
    /// What was cut. `None` if the text is complete.
    pub cut: Option<CutPart>,
}

/// What was cut from a value or an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutPart {
    /// The size of the complete value or output, in bytes.
    pub bytes: usize,
    /// The size of the part that is shown, in bytes.
    pub shown: usize,
    /// The places of a value at which something is omitted, each as a JSON object.
    pub omissions: Vec<Value>,
    /// The handle of the complete value or output. `None` if it is not stored.
    pub handle: Option<ResultHandle>,
}

/// The session of a run, as the answer to the run reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    pub name: String,
    /// Number of runs in the session so far, including this run.
    pub runs: u32,
    /// Why the session ended with this run. `None` if the session is still open.
    pub ended: Option<String>,
}

/// The sandbox protection of the worker in which the code ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The sandbox protections that this host does not provide. Empty for full protection.
    pub reduced: Vec<String>,
}

/// The calls of a run, and what it used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunUsage {
    pub calls: Vec<CallReport>,
    /// Whether each report in `calls` is about all calls of the same tool with the same outcome.
    pub is_grouped: bool,
    pub stats: RunStats,
}

/// The call of a run, or all its calls of the same tool with the same outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallReport {
    pub server: String,
    pub item: CalledItem,
    pub outcome: CallOutcome,
    /// Whether the call may have changed something.
    pub changes: bool,
    /// Whether the call probably changed nothing, because of the name of the tool.
    pub likely_read: bool,
    /// Whether the server sent content that is not in the value of the call, or in the message of its failure.
    pub content_aside: bool,
    /// The number of calls, if this report is about a group of calls.
    pub count: Option<usize>,
    /// The duration of the calls in milliseconds.
    pub ms: f64,
    /// The total length of the replies in bytes.
    pub bytes: usize,
}

/// The item of an upstream server that a program called, by its name or URI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CalledItem {
    Tool(String),
    Resource(String),
    Prompt(String),
    /// The list of all resources or of all prompts.
    List(String),
}

impl CalledItem {
    /// Returns the kind of the item, as answers name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Tool(_) => "tool",
            Self::Resource(_) => "resource",
            Self::Prompt(_) => "prompt",
            Self::List(_) => "list",
        }
    }

    /// Returns the name of the item, or its URI.
    pub fn name(&self) -> &str {
        match self {
            Self::Tool(name) | Self::Resource(name) | Self::Prompt(name) | Self::List(name) => name,
        }
    }
}

/// The resources that a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStats {
    /// The duration of the run in milliseconds. `None` if the run had no worker.
    pub wall_ms: Option<f64>,
    /// The CPU time of the run in milliseconds. `None` if it is unknown.
    pub cpu_ms: Option<f64>,
    pub peak_memory_bytes: Option<u64>,
    pub tool_calls: usize,
    /// The bytes that tools returned and that are not part of the answer.
    pub bytes_kept_out: usize,
}

/// A file of a run, as its answer reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileReport {
    Stored(StoredFileReport),
    /// A file that is not stored, with the reason.
    LeftOut {
        name: String,
        reason: String,
    },
}

/// A file that is stored for the AI client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredFileReport {
    pub name: String,
    pub mime_type: String,
    /// Size in bytes.
    pub bytes: u64,
    pub handle: ResultHandle,
    /// The position of the file in the content of the answer, counted from 1.
    pub content: usize,
    /// The time for which the file is stored, in seconds.
    pub expires_s: u64,
    /// Whether the file is deleted when the AI client disconnects.
    pub ends_with_client: bool,
}

impl RunAnswer {
    /// Creates an answer without a value, an output, an error and anything that only a run has.
    pub fn new(execution: Option<ExecutionId>, status: RunStatus) -> Self {
        Self {
            execution,
            status,
            value: None,
            no_value: None,
            stdout: ShownText::default(),
            stderr: ShownText::default(),
            error: None,
            session: None,
            usage: None,
            sandbox: None,
            cut_hint: None,
            files: Vec::new(),
        }
    }

    /// Creates the answer to a request that did not become a run, or whose answer was lost: an error of this type.
    pub fn without_run(kind: &str, message: impl Into<String>) -> Self {
        let error = RunError::new(kind, message);
        Self { error: Some(error), ..Self::new(None, RunStatus::Error) }
    }

    /// Returns an answer to the same run that is an error in place of its value and output, for the case that this answer
    /// is too large to be stored.
    pub fn without_result(&self) -> Self {
        let message = "the run has ended, but its result is too large to be stored";
        let error = RunError {
            hint: Some("return less, or print less".into()),
            ..RunError::new("ResultTooLarge", message)
        };
        let usage = self.usage.clone().map(|usage| RunUsage { is_grouped: false, ..usage });
        Self { error: Some(error), usage, ..Self::new(self.execution, RunStatus::Error) }
    }

    /// Returns the calls of the run.
    pub fn calls(&self) -> &[CallReport] {
        self.usage.as_ref().map_or(&[], |usage| &usage.calls)
    }

    /// Returns the complete value, if there is one.
    pub fn whole_value(&self) -> Option<&RawValue> {
        self.value.as_ref().filter(|value| value.cut.is_none()).map(|value| &*value.json)
    }
}

#[cfg(test)]
pub(crate) mod tests;
