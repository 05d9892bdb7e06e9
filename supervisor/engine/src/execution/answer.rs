//! The answer to one execution. AI clients and `lockhouse run --json` get the same JSON members.

use std::time::Duration;

use lockhouse_base::json::truncate_text;
use lockhouse_gate::{CallRecord, ReturnedFiles};
use lockhouse_protocol::{CodeError, ExecutionId};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::display_limits::DisplayLimits;
use super::end_reason::EndReason;
use super::error_report::{describe_changes, report};
use super::status::Status;
use super::{Cancellation, ExecutionLimits, RunResult};

/// The sandbox protection of the worker in which the code ran.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// The sandbox protections that this host does not provide. Empty for full protection.
    pub reduced: Vec<String>,
}

/// The one final answer to a request to run code.
#[derive(Debug)]
pub struct Answer {
    pub execution: ExecutionId,
    pub status: Status,
    /// The value that the program returned, as JSON text; `None` if there is no value. The text is not parsed
    /// into a tree, because a tree of a hostile value could take about a hundred times the memory.
    pub value: Option<Box<RawValue>>,
    /// Advice on how to return a value, for a program that returned none, probably by mistake. `None` if
    /// there is no such advice.
    pub missing_value_advice: Option<String>,
    pub stdout: String,
    pub stderr: String,
    pub error: Option<CodeError>,
    /// For a failed program: one sentence about its calls that may already have changed something. `None` if there
    /// are no such calls.
    pub changed: Option<String>,
    pub calls: Vec<CallRecord>,
    /// The files that the program returned, apart from those in its value.
    pub files: ReturnedFiles,
    /// The protection of the worker's sandbox. `None` if the run had no worker.
    pub sandbox: Option<Sandbox>,
    /// The session of the run. `None` for a run without a session.
    pub session: Option<SessionReport>,
    /// Why the request was refused; `None` if it was not refused. Only Lockhouse sets this: submitted code cannot
    /// pretend to be refused.
    pub refusal: Option<Refusal>,
    /// How long the AI client should wait before it repeats a refused request. `None` if unknown.
    pub retry_after: Option<Duration>,
    pub(super) stats: Map<String, Value>,
}

/// Why a request to run code was refused before it had a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is invalid, for example because the code is empty.
    InvalidRequest,
    /// This host cannot run the language of the code, or Lockhouse is shutting down.
    Unavailable,
    /// The session that the request names has ended.
    SessionEnded,
    /// Too many sessions are open, or too many runs wait for the session that the request names.
    SessionsBusy,
    /// The AI client exceeded its quota or its rate limit for runs.
    RateLimited,
    /// No worker became free in time, or too many runs already wait for a worker.
    Busy,
}

/// The session of a run, as reported in the answer to the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionReport {
    pub name: String,
    /// Number of runs in the session so far, including this run.
    pub runs: u32,
    /// Why the session ended with this run. `None` if the session is still open.
    pub ended: Option<String>,
}

impl SessionReport {
    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({"name": self.name, "runs": self.runs});
        if self.runs == 1 {
            json["new"] = true.into();
        }
        if let Some(why) = &self.ended {
            json["ended"] = format!("{why}; its variables are lost").into();
        }
        json
    }
}

/// Maximum size in bytes of each of two texts of an error: its type and its code. The worker sends the error, so the
/// supervisor truncates its texts. Also the maximum number of characters of [`Answer::missing_value_advice`].
const NAME_BYTES_MAX: usize = 200;
/// Maximum size in bytes of each of the other texts of an error: its message, its traceback and its hint.
const TEXT_BYTES_MAX: usize = 4_000;

impl Answer {
    /// Creates the answer to a request to run code that was refused before it had a worker.
    pub fn refused(execution: ExecutionId, refusal: Refusal, message: String, hint: &str) -> Self {
        let kind = format!("{refusal:?}");
        let error = CodeError { kind, message, hint: Some(hint.into()), ..CodeError::default() };
        let answer = Self::without_worker(execution, Status::Error);
        Self { error: Some(error), refusal: Some(refusal), ..answer }
    }

    /// Creates the answer to a run that was cancelled before it had a worker.
    pub fn cancelled(execution: ExecutionId, why: Cancellation) -> Self {
        let message = format!("{}, before it had a worker: nothing was run", why.message());
        let error = CodeError { kind: "Cancelled".into(), message, ..CodeError::default() };
        Self { error: Some(error), ..Self::without_worker(execution, Status::Cancelled) }
    }

    fn without_worker(execution: ExecutionId, status: Status) -> Self {
        Self {
            execution,
            status,
            value: None,
            missing_value_advice: None,
            stdout: String::new(),
            stderr: String::new(),
            error: None,
            changed: None,
            calls: Vec::new(),
            files: ReturnedFiles::default(),
            sandbox: None,
            session: None,
            refusal: None,
            retry_after: None,
            stats: Map::new(),
        }
    }

    /// Whether the answer has files: returned ones, or some in its value.
    pub fn has_files(&self) -> bool {
        let ReturnedFiles { stored, left_out } = &self.files;
        let in_value = self.value.as_ref().is_some_and(|value| value.get().contains("{\"base64\":\""));
        in_value || !stored.is_empty() || !left_out.is_empty()
    }

    pub fn new(execution: ExecutionId, ended: RunResult, limits: &ExecutionLimits, sandbox: Sandbox) -> Self {
        let stats = stats(&ended);
        let RunResult { end_reason, stdout, stderr, calls, calls_in_flight, files, .. } = ended;
        let (finished_calls, calls_in_flight) = calls.split_at(calls.len().saturating_sub(calls_in_flight));
        let missing_value_advice = match &end_reason {
            EndReason::NoValue(advice) => Some(advice.chars().take(NAME_BYTES_MAX).collect()),
            _ => None,
        };
        let (status, value, error) = report(end_reason, limits, finished_calls, calls_in_flight);
        let error = error.map(truncate_error);
        let changed = error.as_ref().and_then(|_| describe_changes(&calls));
        Self {
            execution,
            status,
            value,
            missing_value_advice,
            stdout,
            stderr,
            error,
            changed,
            calls,
            files,
            sandbox: Some(sandbox),
            session: None,
            refusal: None,
            retry_after: None,
            stats,
        }
    }
}

impl Answer {
    /// Returns how many bytes of the value and of the output are shown within these limits.
    pub fn shown_bytes(&self, limits: DisplayLimits) -> usize {
        let value = self.value.as_ref().map_or(0, |value| value.get().len().min(limits.part_bytes));
        let printed = [&self.stdout, &self.stderr].map(|text| text.len().min(limits.printed_bytes));
        value + printed.iter().sum::<usize>()
    }
}

impl Sandbox {
    pub fn to_json(&self) -> Value {
        match self.reduced.is_empty() {
            true => json!({"level": "full"}),
            false => json!({"level": "reduced", "reduced": self.reduced}),
        }
    }
}

fn truncate_error(error: CodeError) -> CodeError {
    let cut = |text: String, max: usize| truncate_text(&text, max).unwrap_or(text);
    CodeError {
        kind: cut(error.kind, NAME_BYTES_MAX),
        code: error.code.map(|code| cut(code, NAME_BYTES_MAX)),
        message: cut(error.message, TEXT_BYTES_MAX),
        traceback: error.traceback.map(|text| cut(text, TEXT_BYTES_MAX)),
        hint: error.hint.map(|hint| cut(hint, TEXT_BYTES_MAX)),
        ..error
    }
}

fn stats(ended: &RunResult) -> Map<String, Value> {
    let millis = |duration: std::time::Duration| Value::from(duration.as_micros() as f64 / 1000.0);
    let mut stats = Map::new();
    stats.insert("wall_ms".into(), millis(ended.wall));
    if let Some(cpu) = ended.cpu {
        stats.insert("cpu_ms".into(), millis(cpu));
    }
    if let Some(bytes) = ended.peak_memory_bytes {
        stats.insert("peak_memory_bytes".into(), bytes.into());
    }
    stats
}
