//! Converts the answer to an execution to JSON, for AI clients and for `lockhouse run --json`.

use std::borrow::Cow;

use lockhouse_base::json;
use lockhouse_protocol::CodeError;
use lockhouse_protocol::json_text::quote_large_integers;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::Answer;
use super::call_summary;

/// The parts of an answer that may have been truncated, in the form in which they go into the answer's JSON.
pub(super) struct AnswerParts<'a> {
    pub(super) value: Option<Value>,
    pub(super) stdout: Cow<'a, str>,
    pub(super) stderr: Cow<'a, str>,
    pub(super) calls: Value,
    /// Total bytes of the value, stdout, stderr and files that the answer contains.
    pub(super) bytes: usize,
}

impl AnswerParts<'_> {
    pub(super) fn empty() -> Self {
        Self { value: None, stdout: "".into(), stderr: "".into(), calls: Value::Null, bytes: 0 }
    }
}

impl Answer {
    /// Returns the complete answer as JSON, without truncation.
    pub fn to_json(&self) -> Value {
        let value = self.value.as_deref();
        let bytes = value.map_or(0, |value| value.get().len()) + self.stdout.len() + self.stderr.len();
        self.to_json_with(AnswerParts {
            value: value.map(parse_value),
            stdout: self.stdout.as_str().into(),
            stderr: self.stderr.as_str().into(),
            calls: call_summary::list(&self.calls),
            bytes,
        })
    }

    /// Returns the answer as JSON, with the value, output and calls from `parts`. Omits a value that is `None`, and
    /// empty output.
    pub(super) fn to_json_with(&self, parts: AnswerParts<'_>) -> Value {
        let mut answer = json!({"execution": self.execution.to_string(), "status": self.status.as_str()});
        let mut insert = |name: &str, value: Value| answer[name] = value;
        if let Some(value) = parts.value {
            insert("value", value);
        }
        if let Some(advice) = &self.missing_value_advice {
            insert("no_value", advice.as_str().into());
        }
        for (name, text) in [("stdout", parts.stdout), ("stderr", parts.stderr)] {
            if !text.is_empty() {
                insert(name, text.into());
            }
        }
        if let Some(error) = &self.error {
            let mut error = error_json(error, self.changed.as_deref());
            if let Some(after) = self.retry_after {
                error["retry_after_s"] = (after.as_secs_f32().ceil() as u64).into();
            }
            insert("error", error);
        }
        if let Some(session) = &self.session {
            insert("session", session.to_json());
        }
        insert("calls", parts.calls);
        // Bytes that tools returned and that are not part of the answer.
        let received: usize = self.calls.iter().map(|call| call.bytes).sum();
        let mut stats = self.stats.clone();
        stats.insert("tool_calls".into(), self.calls.len().into());
        stats.insert("bytes_kept_out".into(), received.saturating_sub(parts.bytes).into());
        insert("stats", Value::Object(stats));
        if let Some(sandbox) = &self.sandbox {
            insert("sandbox", sandbox.to_json());
        }
        answer
    }
}

/// Parses the JSON text of a program's value, in the form that a reader gets: integers beyond ±(2^53 - 1) are strings of
/// their digits, so that readers in every language read them exactly. Returns the text as a JSON string if it cannot be
/// parsed, for example because it is nested too deeply.
pub fn parse_value(raw: &RawValue) -> Value {
    let json = quote_large_integers(raw.get());
    json::parse_bounded(json.as_bytes(), usize::MAX).unwrap_or_else(|_| json.into())
}

fn error_json(error: &CodeError, changed: Option<&str>) -> Value {
    let mut json = json!({"type": error.kind, "message": error.message});
    let parts = [
        ("code", error.code.clone().map(Value::from)),
        ("line", error.line.map(Value::from)),
        ("column", error.column.map(Value::from)),
        ("traceback", error.traceback.clone().map(Value::from)),
        ("hint", error.hint.clone().map(Value::from)),
        ("changed", changed.map(Value::from)),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            json[name] = value;
        }
    }
    json
}
