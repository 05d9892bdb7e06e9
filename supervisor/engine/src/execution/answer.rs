//! The answer to one execution, before it is truncated for its reader.

use std::time::Duration;

use lockhouse_base::json::truncate_text;
use lockhouse_gate::{CallRecord, ReturnedFiles};
use lockhouse_messages::{RunError, RunStats, RunStatus, Sandbox, SessionReport};
use lockhouse_protocol::{CodeError, ExecutionId};
use serde_json::value::RawValue;

use super::display_limits::DisplayLimits;
use super::end_reason::EndReason;
use super::error_report::{describe_changes, report};
use super::refusal::Refusal;
use super::{Cancellation, ExecutionLimits, RunResult};

/// The one final answer to a request to run code.
#[derive(Debug)]
pub struct ExecutionAnswer {
    pub execution: ExecutionId,
    pub status: RunStatus,
    /// The value that the program returned, as JSON text; `None` if there is no value. The text is not parsed
    /// into a tree, because a tree of a hostile value could take about a hundred times the memory.
    pub value: Option<Box<RawValue>>,
    /// Advice on how to return a value, for a program that returned none, probably by mistake. `None` if
    /// there is no such advice.
    pub missing_value_advice: Option<String>,
    pub stdout: String,
    pub stderr: String,
    pub error: Option<RunError>,
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
    /// The resources that the run used, without its calls.
    pub(super) stats: RunStats,
}

/// Maximum size in bytes of each of two texts of an error: its type and its code. The worker sends the error, so the
/// supervisor truncates its texts. Also the maximum number of characters of [`ExecutionAnswer::missing_value_advice`].
/// Bound: values and answers.
const NAME_BYTES_MAX: usize = 200;
/// Maximum size in bytes of each of the other texts of an error: its message, its traceback and its hint.
/// Bound: values and answers.
const TEXT_BYTES_MAX: usize = 4_000;

impl ExecutionAnswer {
    /// Creates the answer to a request to run code that was refused before it had a worker.
    pub fn refused(execution: ExecutionId, refusal: Refusal, message: String, hint: &str) -> Self {
        let error = RunError { hint: Some(hint.into()), ..RunError::new(refusal.as_str(), message) };
        let answer = Self::without_worker(execution, RunStatus::Error);
        Self { error: Some(error), refusal: Some(refusal), ..answer }
    }

    /// Creates the answer to a run that was cancelled before it had a worker.
    pub fn cancelled(execution: ExecutionId, why: Cancellation) -> Self {
        let message = format!("{}, before it had a worker: nothing was run", why.message());
        let error = RunError::new("Cancelled", message);
        Self { error: Some(error), ..Self::without_worker(execution, RunStatus::Cancelled) }
    }

    /// Adds to the error of a refused request how long the AI client should wait before it repeats the request. `None` if
    /// that is unknown.
    pub(crate) fn with_retry_after(mut self, after: Option<Duration>) -> Self {
        if let Some(error) = &mut self.error {
            error.retry_after_s = after.map(|after| after.as_secs_f32().ceil() as u64);
        }
        self
    }

    fn without_worker(execution: ExecutionId, status: RunStatus) -> Self {
        Self {
            execution,
            status,
            value: None,
            missing_value_advice: None,
            stdout: String::new(),
            stderr: String::new(),
            error: None,
            calls: Vec::new(),
            files: ReturnedFiles::default(),
            sandbox: None,
            session: None,
            refusal: None,
            stats: RunStats::default(),
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
        let error =
            error.map(|error| RunError { changed: describe_changes(&calls), ..truncate_error(error).into() });
        Self {
            execution,
            status,
            value,
            missing_value_advice,
            stdout,
            stderr,
            error,
            calls,
            files,
            sandbox: Some(sandbox),
            session: None,
            refusal: None,
            stats,
        }
    }
}

impl ExecutionAnswer {
    /// Returns how many bytes of the value and of the output are shown within these limits.
    pub fn shown_bytes(&self, limits: DisplayLimits) -> usize {
        let value = self.value.as_ref().map_or(0, |value| value.get().len().min(limits.part_bytes));
        let printed = [&self.stdout, &self.stderr].map(|text| text.len().min(limits.printed_bytes));
        value + printed.iter().sum::<usize>()
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

fn stats(ended: &RunResult) -> RunStats {
    let millis = |duration: Duration| duration.as_micros() as f64 / 1000.0;
    RunStats {
        wall_ms: Some(millis(ended.wall)),
        cpu_ms: ended.cpu.map(millis),
        peak_memory_bytes: ended.peak_memory_bytes,
        ..RunStats::default()
    }
}
