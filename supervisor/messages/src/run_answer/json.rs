//! The answer to a run as JSON, for AI clients and for `lockhouse run --json`. The order of the members is part of it.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::{
    CallReport, CutPart, FileReport, RunAnswer, RunError, RunStats, SessionReport, ShownText,
    StoredFileReport,
};
use crate::RESULT_URI_PREFIX;

/// The name of a value that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutValue {
    /// `value`, as that of a complete value.
    Value,
    /// `preview`, so that no reader takes it for a complete value.
    Preview,
}

/// The members of an answer that are serialized. The JSON is the same in all places that show an answer, except for the
/// members that are left out.
#[derive(Clone, Copy, Debug)]
pub struct AnswerMembers<'a> {
    pub answer: &'a RunAnswer,
    pub cut_value: CutValue,
    /// Whether the value is included, and the advice for a program that returned none.
    pub with_value: bool,
    pub with_output: bool,
}

impl RunAnswer {
    /// Returns the answer with all its members, for serialization.
    pub fn members(&self, cut_value: CutValue) -> AnswerMembers<'_> {
        AnswerMembers { answer: self, cut_value, with_value: true, with_output: true }
    }
}

impl AnswerMembers<'_> {
    /// Returns the members as a JSON object.
    pub fn to_json(self) -> Value {
        // It fails only for a map whose keys are no strings.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Serialize for AnswerMembers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { answer, cut_value, with_value, with_output } = *self;
        let mut map = serializer.serialize_map(None)?;
        if let Some(execution) = answer.execution {
            map.serialize_entry("execution", &execution.to_string())?;
        }
        map.serialize_entry("status", answer.status.as_str())?;
        if let Some(value) = answer.value.as_ref().filter(|_| with_value) {
            let is_preview = value.cut.is_some() && cut_value == CutValue::Preview;
            map.serialize_entry(if is_preview { "preview" } else { "value" }, &value.json)?;
        }
        if let Some(advice) = answer.no_value.as_ref().filter(|_| with_value) {
            map.serialize_entry("no_value", advice)?;
        }
        for (name, output) in [("stdout", &answer.stdout), ("stderr", &answer.stderr)] {
            if with_output && !output.text.is_empty() {
                map.serialize_entry(name, &output.text)?;
            }
        }
        if let Some(error) = &answer.error {
            map.serialize_entry("error", &error_json(error))?;
        }
        if let Some(session) = &answer.session {
            map.serialize_entry("session", &session_json(session))?;
        }
        if let Some(usage) = &answer.usage {
            map.serialize_entry("calls", &usage.calls.iter().map(call_json).collect::<Value>())?;
            map.serialize_entry("stats", &stats_json(&usage.stats))?;
        }
        if let Some(sandbox) = &answer.sandbox {
            let json = match sandbox.reduced.is_empty() {
                true => json!({"level": "full"}),
                false => json!({"level": "reduced", "reduced": sandbox.reduced}),
            };
            map.serialize_entry("sandbox", &json)?;
        }
        if let Some(truncated) = truncated_json(answer) {
            map.serialize_entry("truncated", &truncated)?;
        }
        if !answer.files.is_empty() {
            map.serialize_entry("files", &answer.files.iter().map(file_json).collect::<Value>())?;
        }
        map.end()
    }
}

fn error_json(error: &RunError) -> Value {
    let mut json = json!({"type": error.kind, "message": error.message});
    let parts = [
        ("code", error.code.as_ref().map(|code| code.as_str().into())),
        ("line", error.line.map(Value::from)),
        ("column", error.column.map(Value::from)),
        ("traceback", error.traceback.as_deref().map(Value::from)),
        ("hint", error.hint.as_deref().map(Value::from)),
        ("changed", error.changed.as_deref().map(Value::from)),
        ("retry_after_s", error.retry_after_s.map(Value::from)),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            json[name] = value;
        }
    }
    json
}

fn session_json(session: &SessionReport) -> Value {
    let mut json = json!({"name": session.name, "runs": session.runs});
    if session.runs == 1 {
        json["new"] = true.into();
    }
    if let Some(why) = session.end_sentence() {
        json["ended"] = why.into();
    }
    json
}

impl SessionReport {
    /// Returns why the session ended, and what follows. `None` if the session is still open.
    pub fn end_sentence(&self) -> Option<String> {
        self.ended.as_ref().map(|why| format!("{why}; its variables are lost"))
    }
}

fn call_json(call: &CallReport) -> Value {
    let mut json = json!({
        "server": call.server, call.item.kind(): call.item.name(), "outcome": call.outcome.as_str(),
        "changes": call.changes,
    });
    if call.likely_read {
        json["likely_read"] = true.into();
    }
    if call.content_aside {
        json["content_aside"] = true.into();
    }
    if let Some(count) = call.count {
        json["count"] = count.into();
    }
    (json["ms"], json["bytes"]) = (call.ms.into(), call.bytes.into());
    json
}

fn stats_json(stats: &RunStats) -> Value {
    let RunStats { wall_ms, cpu_ms, peak_memory_bytes, tool_calls, bytes_kept_out } = *stats;
    let parts = [
        ("wall_ms", wall_ms.map(Value::from)),
        ("cpu_ms", cpu_ms.map(Value::from)),
        ("peak_memory_bytes", peak_memory_bytes.map(Value::from)),
        ("tool_calls", Some(tool_calls.into())),
        ("bytes_kept_out", Some(bytes_kept_out.into())),
    ];
    parts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Returns which parts of the answer were shortened, with the handle of each complete part that is stored. `None` if no
/// part was.
fn truncated_json(answer: &RunAnswer) -> Option<Value> {
    let value = answer.value.as_ref().and_then(|value| value.cut.as_ref());
    let of_text = |output: &ShownText| output.cut.as_ref().map(cut_json);
    let grouped = answer.usage.as_ref().filter(|usage| usage.is_grouped);
    let parts = [
        ("value", value.map(cut_json)),
        ("stdout", of_text(&answer.stdout)),
        ("stderr", of_text(&answer.stderr)),
        (
            "calls",
            grouped.map(
                |usage| json!({"count": usage.stats.tool_calls, "shown": "grouped by tool and outcome"}),
            ),
        ),
        ("hint", answer.cut_hint.as_deref().map(Value::from)),
    ];
    let parts: Map<String, Value> =
        parts.into_iter().filter_map(|(name, part)| Some((name.to_owned(), part?))).collect();
    (!parts.is_empty()).then_some(Value::Object(parts))
}

fn cut_json(cut: &CutPart) -> Value {
    let mut json = json!({"bytes": cut.bytes, "shown": cut.shown});
    if !cut.omissions.is_empty() {
        json["cut"] = cut.omissions.clone().into();
    }
    if let Some(handle) = &cut.handle {
        json["handle"] = handle.as_str().into();
    }
    json
}

fn file_json(file: &FileReport) -> Value {
    let file = match file {
        FileReport::LeftOut { name, reason } => return json!({"name": name, "left_out": reason}),
        FileReport::Stored(file) => file,
    };
    let StoredFileReport { name, mime_type, bytes, handle, content, expires_s, ends_with_client } = file;
    let mut json = json!({
        "name": name, "mime_type": mime_type, "bytes": bytes, "handle": handle.as_str(),
        "uri": format!("{RESULT_URI_PREFIX}{handle}"), "content": content, "expires_s": expires_s,
    });
    if *ends_with_client {
        json["ends_with_client"] = true.into();
    }
    json
}
