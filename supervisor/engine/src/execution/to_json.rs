//! An answer as JSON: the same object on the wire, with `--json` and in tests.

use std::borrow::Cow;

use lockhouse_base::json;
use lockhouse_protocol::CodeError;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::Answer;
use super::calls;

/// An answer's parts as they are shown.
pub(super) struct Parts<'a> {
    pub(super) value: Option<Value>,
    pub(super) stdout: Cow<'a, str>,
    pub(super) stderr: Cow<'a, str>,
    pub(super) calls: Value,
    /// Bytes of value, stdout, stderr and files.
    pub(super) bytes: usize,
}

impl Parts<'_> {
    pub(super) fn nothing() -> Self {
        Self { value: None, stdout: "".into(), stderr: "".into(), calls: Value::Null, bytes: 0 }
    }
}

impl Answer {
    /// The whole answer, whatever its length.
    pub fn to_json(&self) -> Value {
        let value = self.value.as_deref();
        let bytes = value.map_or(0, |value| value.get().len()) + self.stdout.len() + self.stderr.len();
        self.to_json_of(Parts {
            value: value.map(parsed),
            stdout: self.stdout.as_str().into(),
            stderr: self.stderr.as_str().into(),
            calls: calls::each(&self.calls),
            bytes,
        })
    }

    /// The answer with these in the place of its parts. Absent ones are left out.
    pub(super) fn to_json_of(&self, parts: Parts<'_>) -> Value {
        let mut answer = json!({"execution": self.execution.to_string(), "status": self.status.as_str()});
        let mut put = |name: &str, value: Value| answer[name] = value;
        if let Some(value) = parts.value {
            put("value", value);
        }
        for (name, text) in [("stdout", parts.stdout), ("stderr", parts.stderr)] {
            if !text.is_empty() {
                put(name, text.into());
            }
        }
        if let Some(error) = &self.error {
            let mut error = error_json(error, self.changed.as_deref());
            if let Some(after) = self.retry_after {
                error["retry_after_s"] = (after.as_secs_f32().ceil() as u64).into();
            }
            put("error", error);
        }
        if let Some(session) = &self.session {
            put("session", session.to_json());
        }
        put("calls", parts.calls);
        // Of what tools answered, what did not become part of this.
        let received: usize = self.calls.iter().map(|call| call.bytes).sum();
        let mut stats = self.stats.clone();
        stats.insert("tool_calls".into(), self.calls.len().into());
        stats.insert("bytes_kept_out".into(), received.saturating_sub(parts.bytes).into());
        put("stats", Value::Object(stats));
        if let Some(sandbox) = &self.sandbox {
            put("sandbox", sandbox.to_json());
        }
        answer
    }
}

/// The value itself; as the text that it is where no tree is made of it.
pub fn parsed(raw: &RawValue) -> Value {
    json::tree(raw.get().as_bytes(), usize::MAX).unwrap_or_else(|_| raw.get().into())
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
