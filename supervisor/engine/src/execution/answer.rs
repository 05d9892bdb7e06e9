//! The answer to one execution: the same object on the wire, with `--json` and in tests.

use std::borrow::Cow;
use std::time::Duration;

use lockhouse_base::json::{self, cut_text};
use lockhouse_gate::CallRecord;
use lockhouse_protocol::{CodeError, ExecutionId};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::status::Status;
use super::told::{changed, told};
use super::{Cancellation, Ended};

/// How well the worker was sealed.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// What this host does not give; empty means full protection.
    pub reduced: Vec<String>,
}

/// The one final answer.
#[derive(Debug)]
pub struct Answer {
    pub execution: ExecutionId,
    pub status: Status,
    /// As text: parsed in full, a hostile value would take a hundred times its size.
    pub value: Option<Box<RawValue>>,
    pub stdout: String,
    pub stderr: String,
    pub error: Option<CodeError>,
    /// Beside an error: what may have been changed before it, in a sentence.
    pub changed: Option<String>,
    pub calls: Vec<CallRecord>,
    /// None when no worker was involved.
    pub sandbox: Option<Sandbox>,
    /// Of a run in a session.
    pub session: Option<InSession>,
    /// Set by us alone, whatever the code says of itself.
    pub refusal: Option<Refusal>,
    /// When to try again what was refused.
    pub retry_after: Option<Duration>,
    pub(super) stats: Map<String, Value>,
}

/// Why an execution never got to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request cannot be meant so.
    InvalidRequest,
    /// This host has no worker for it.
    Unavailable,
    /// The session that it was for is gone.
    SessionEnded,
    /// There are too many sessions, or too many runs wait for one.
    SessionsBusy,
    /// Its client has used what it may.
    RateLimited,
    /// Every worker is taken, and too many runs wait for one.
    Busy,
}

/// The session that a run was in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InSession {
    pub name: String,
    /// Its runs so far, with this one.
    pub runs: u32,
    /// Why it ended with this run, if it did.
    pub ended: Option<String>,
}

impl InSession {
    pub(super) fn to_json(&self) -> Value {
        let mut json = json!({"name": self.name, "runs": self.runs});
        if self.runs == 1 {
            json["new"] = true.into();
        }
        if let Some(why) = &self.ended {
            json["ended"] = format!("{why}; its variables are gone").into();
        }
        json
    }
}

/// Bytes of an error's parts. The worker made them, so the limits are kept here.
const NAME_BYTES_MAX: usize = 200;
const TEXT_BYTES_MAX: usize = 4_000;

impl Answer {
    /// An execution that never got to a worker.
    pub fn refused(execution: ExecutionId, refusal: Refusal, message: String, hint: &str) -> Self {
        let kind = format!("{refusal:?}");
        let error = CodeError { kind, message, hint: Some(hint.into()), ..CodeError::default() };
        let nothing = Self::without_worker(execution, Status::Error);
        Self { error: Some(error), refusal: Some(refusal), ..nothing }
    }

    /// An execution that was ended before it had a worker.
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
            stdout: String::new(),
            stderr: String::new(),
            error: None,
            changed: None,
            calls: Vec::new(),
            sandbox: None,
            session: None,
            refusal: None,
            retry_after: None,
            stats: Map::new(),
        }
    }

    pub fn new(execution: ExecutionId, ended: Ended, wall_limit: f32, sandbox: Sandbox) -> Self {
        let stats = stats(&ended);
        let Ended { ending, stdout, stderr, calls, waiting, .. } = ended;
        let (over, waiting) = calls.split_at(calls.len().saturating_sub(waiting));
        let (status, value, error) = told(ending, wall_limit, over, waiting);
        let value = value.map(exact);
        let error = error.map(bounded);
        let changed = error.as_ref().and_then(|_| changed(&calls));
        Self {
            execution,
            status,
            value,
            stdout,
            stderr,
            error,
            changed,
            calls,
            sandbox: Some(sandbox),
            session: None,
            refusal: None,
            retry_after: None,
            stats,
        }
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

/// Integers are exact for every reader, in each language.
fn exact(value: Box<RawValue>) -> Box<RawValue> {
    match json::exact(value.get()) {
        Cow::Borrowed(_) => value,
        Cow::Owned(exact) => RawValue::from_string(exact).unwrap_or(value),
    }
}

fn bounded(error: CodeError) -> CodeError {
    let cut = |text: String, max: usize| cut_text(&text, max).unwrap_or(text);
    CodeError {
        kind: cut(error.kind, NAME_BYTES_MAX),
        code: error.code.map(|code| cut(code, NAME_BYTES_MAX)),
        message: cut(error.message, TEXT_BYTES_MAX),
        traceback: error.traceback.map(|text| cut(text, TEXT_BYTES_MAX)),
        hint: error.hint.map(|hint| cut(hint, TEXT_BYTES_MAX)),
        ..error
    }
}

fn stats(ended: &Ended) -> Map<String, Value> {
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
