//! What the audit log says about one run and its calls.

use std::time::SystemTime;

use lockhouse_audit::CallIdentity;
use serde_json::{Value, json};

use crate::text;

/// Maximum number of calls of one run that are stored. Further ones are counted.
pub(super) const CALLS_MAX: usize = 1_000;

/// A run, as far as the audit log has been read.
#[derive(Clone, Debug, Default)]
pub(super) struct RunRecord {
    /// RFC 3339.
    pub(super) started: String,
    pub(super) client: Option<String>,
    pub(super) language: String,
    pub(super) servers: Vec<String>,
    /// SHA-256 of the program, and of its stored text if it was stored.
    pub(super) code: String,
    pub(super) code_kept: Option<String>,
    pub(super) code_bytes: u64,
    pub(super) policy: Option<String>,
    /// `None` while the run is active, or if its process was killed.
    pub(super) status: Option<String>,
    /// Why the run was refused before it started. `None` if it was not refused.
    pub(super) refusal: Option<String>,
    pub(super) wall_ms: Option<f64>,
    pub(super) cpu_ms: Option<f64>,
    pub(super) answer_bytes: Option<u64>,
    pub(super) result_bytes: u64,
    pub(super) call_count: u64,
    pub(super) denied: u64,
    /// The calls, in the order in which they began. Empty if they were dropped.
    pub(super) calls: Vec<CallRecord>,
    /// Whether the calls were dropped to limit memory. They can be read from the log.
    pub(super) are_calls_dropped: bool,
    /// Number of changes of this record.
    pub(super) revision: u64,
}

/// One call of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct CallRecord {
    pub(super) id: String,
    server: String,
    kind: &'static str,
    item: String,
    line: Option<u32>,
    /// When the call was sent, in milliseconds after the start of the run. `None` if it was not sent.
    pub(super) start_ms: Option<f64>,
    /// When a person was asked about the call, in milliseconds after the start of the run. `None` if nobody was asked.
    pub(super) asked_ms: Option<f64>,
    pub(super) ms: Option<f64>,
    pub(super) outcome: Option<String>,
    pub(super) decision: String,
    pub(super) rule: Option<String>,
    pub(super) approval: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) arguments_bytes: Option<u64>,
    pub(super) result_bytes: Option<u64>,
}

impl RunRecord {
    /// Returns the record of a call, which is created if it is new. `None` if the run has too many calls.
    pub(super) fn call(&mut self, about: &CallIdentity) -> Option<&mut CallRecord> {
        // The latest calls are at the end.
        if let Some(at) = self.calls.iter().rposition(|call| call.id == about.call) {
            return self.calls.get_mut(at);
        }
        if self.calls.len() >= CALLS_MAX || about.call.is_empty() || self.are_calls_dropped {
            return None;
        }
        let CallIdentity { call, server, kind, item, line, .. } = about;
        let (kind, server, item) = (*kind, text::name(server), text::name(item));
        self.calls.push(CallRecord {
            id: call.clone(),
            server,
            kind,
            item,
            line: *line,
            ..CallRecord::default()
        });
        self.calls.last_mut()
    }

    /// Returns a time as milliseconds after the start of the run.
    pub(super) fn offset_ms(&self, time: &str) -> f64 {
        let parsed = |text: &str| humantime::parse_rfc3339(text).unwrap_or(SystemTime::UNIX_EPOCH);
        let after = parsed(time).duration_since(parsed(&self.started)).unwrap_or_default();
        after.as_micros() as f64 / 1000.0
    }

    pub(super) fn drop_calls(&mut self) {
        self.are_calls_dropped = true;
        self.calls = Vec::new();
    }

    /// Returns the number of calls that are not in `calls`.
    pub(super) fn calls_left_out(&self) -> u64 {
        self.call_count.saturating_sub(self.calls.len() as u64)
    }

    /// Returns the bytes that tools returned and that are not part of the answer. `None` if the size of the answer is
    /// not known.
    pub(super) fn kept_out_bytes(&self) -> Option<u64> {
        self.answer_bytes.map(|answer| self.result_bytes.saturating_sub(answer))
    }
}

impl CallRecord {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "call": self.id, "server": self.server, "kind": self.kind, "item": self.item, "line": self.line,
            "start_ms": self.start_ms.or(self.asked_ms).unwrap_or_default(), "asked_ms": self.asked_ms,
            "ms": self.ms, "outcome": self.outcome, "decision": self.decision, "rule": self.rule,
            "approval": self.approval, "reason": self.reason, "arguments_bytes": self.arguments_bytes,
            "result_bytes": self.result_bytes,
        })
    }
}
