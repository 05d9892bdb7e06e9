//! The complete answer to an execution, and the part of each answer that is never truncated.

use lockhouse_base::json;
use lockhouse_messages::{RunAnswer, RunStats, RunUsage, ShownText, ShownValue};
use lockhouse_protocol::json_text::quote_large_integers;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::answer::ExecutionAnswer;
use super::call_summary::{self, CallReports};

impl ExecutionAnswer {
    /// Returns the complete answer, without truncation.
    pub fn to_complete(&self) -> RunAnswer {
        let value = self.value.as_deref();
        let shown = value.map_or(0, |value| value.get().len()) + self.stdout.len() + self.stderr.len();
        let whole = |text: &str| ShownText { text: text.to_owned(), cut: None };
        RunAnswer {
            value: value.map(|value| ShownValue { json: raw(&parse_value(value)), cut: None }),
            stdout: whole(&self.stdout),
            stderr: whole(&self.stderr),
            ..self.without_results(call_summary::list(&self.calls), shown)
        }
    }

    /// Returns the answer without the value and the output of the program. `calls` are the reports about its calls, and
    /// `shown` is the total size in bytes of the value, the output and the files that the answer will show.
    pub(super) fn without_results(&self, calls: CallReports, shown: usize) -> RunAnswer {
        let CallReports { reports: calls, is_grouped } = calls;
        let received: usize = self.calls.iter().map(|call| call.bytes).sum();
        let stats = RunStats {
            tool_calls: self.calls.len(),
            bytes_kept_out: received.saturating_sub(shown),
            ..self.stats
        };
        RunAnswer {
            no_value: self.missing_value_advice.clone(),
            error: self.error.clone(),
            session: self.session.clone(),
            usage: Some(RunUsage { calls, is_grouped, stats }),
            sandbox: self.sandbox.clone(),
            ..RunAnswer::new(Some(self.execution), self.status)
        }
    }
}

/// Parses the JSON text of a program's value, in the form that a reader gets: integers beyond ±(2^53 - 1) are strings of
/// their digits, so that readers in every language read them exactly. Returns the text as a JSON string if it cannot be
/// parsed, for example because it is nested too deeply.
pub fn parse_value(value: &RawValue) -> Value {
    tree(&quote_large_integers(value.get()))
}

/// Parses the JSON text of a value. Returns the text as a JSON string if it cannot be parsed.
pub(super) fn tree(json: &str) -> Value {
    json::parse_bounded(json.as_bytes(), usize::MAX).unwrap_or_else(|_| json.into())
}

/// Writes a value as JSON text in one form: without white space, each number and each string in its shortest form, and of
/// several members with the same name only the last one.
pub(super) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}
