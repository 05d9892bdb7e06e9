//! Adds up audit records.

use std::collections::{BTreeMap, HashMap};

use lockhouse_audit::{AuditEvent, Record};

/// How many bytes of JSON are one token of a model, on average (docs/measurements.md).
const BYTES_PER_TOKEN: u64 = 4;
/// The name of clients that have none, such as commands.
const UNNAMED: &str = "-";
/// What a run or a call that succeeded ends with.
const SUCCESS: &str = "ok";

/// What a client, or all on a day, have used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) runs: u64,
    pub(super) failed: u64,
    pub(super) refused: u64,
    pub(super) calls: u64,
    pub(super) failed_calls: u64,
    pub(super) denied: u64,
    pub(super) cpu_ms: f64,
    pub(super) wall_ms: f64,
    /// The bytes of the results of calls, and of the answers of runs that made them.
    pub(super) result_bytes: u64,
    pub(super) answer_bytes: u64,
    kept_out_bytes: u64,
}

impl Usage {
    /// How many tokens of results did not reach a model, because its programs processed them.
    pub(super) fn tokens_kept_out(&self) -> u64 {
        self.kept_out_bytes / BYTES_PER_TOKEN
    }
}

/// A run that has begun and not ended yet.
#[derive(Debug)]
struct OpenRun {
    subject: Option<String>,
    result_bytes: u64,
}

/// The usage by subject.
#[derive(Debug)]
pub(super) struct Totals {
    by_day: bool,
    /// The only client that counts; `None` if all do.
    only: Option<String>,
    usage: BTreeMap<String, Usage>,
    open: HashMap<String, OpenRun>,
}

impl Totals {
    pub(super) fn new(by_day: bool, only: Option<String>) -> Self {
        Self { by_day, only, usage: BTreeMap::new(), open: HashMap::new() }
    }

    /// Returns the usage of each subject, in the order of the names.
    pub(super) fn rows(self) -> Vec<(String, Usage)> {
        self.usage.into_iter().collect()
    }

    /// Adds a record. Records must come in the order of time.
    pub(super) fn add(&mut self, record: &Record) {
        match &record.event {
            AuditEvent::Execution { execution, client, .. } => {
                let subject = self.subject(client.as_deref(), &record.time);
                if let Some(subject) = &subject {
                    self.of(subject).runs += 1;
                }
                self.open.insert(execution.clone(), OpenRun { subject, result_bytes: 0 });
            }
            AuditEvent::Refusal { client, .. } => {
                self.count(client.as_deref(), &record.time, |usage| usage.refused += 1);
            }
            AuditEvent::Call { about, .. } => {
                self.count(about.client.as_deref(), &record.time, |usage| usage.calls += 1);
            }
            AuditEvent::Denial { about, .. } => {
                self.count(about.client.as_deref(), &record.time, |usage| usage.denied += 1);
            }
            AuditEvent::Outcome { about, outcome, result_bytes, .. } => {
                let bytes = *result_bytes;
                if let Some(run) = self.open.get_mut(&about.execution) {
                    run.result_bytes = run.result_bytes.saturating_add(bytes);
                }
                self.count(about.client.as_deref(), &record.time, |usage| {
                    usage.failed_calls += u64::from(outcome != SUCCESS);
                    usage.result_bytes = usage.result_bytes.saturating_add(bytes);
                });
            }
            AuditEvent::End { execution, status, wall_ms, cpu_ms, answer_bytes, .. } => {
                let Some(OpenRun { subject, result_bytes }) = self.open.remove(execution) else { return };
                let Some(subject) = subject else { return };
                let (usage, answer_bytes) = (self.of(&subject), answer_bytes.unwrap_or_default());
                usage.failed += u64::from(status != SUCCESS);
                usage.wall_ms += wall_ms;
                usage.cpu_ms += cpu_ms.unwrap_or_default();
                usage.answer_bytes = usage.answer_bytes.saturating_add(answer_bytes);
                let kept_out = result_bytes.saturating_sub(answer_bytes);
                usage.kept_out_bytes = usage.kept_out_bytes.saturating_add(kept_out);
            }
            AuditEvent::Administration(_)
            | AuditEvent::Skill { .. }
            | AuditEvent::Approval { .. }
            | AuditEvent::Question { .. }
            | AuditEvent::Gap { .. }
            | AuditEvent::Clock { .. }
            | AuditEvent::Chain => {}
        }
    }

    fn count(&mut self, client: Option<&str>, time: &str, count: impl FnOnce(&mut Usage)) {
        if let Some(subject) = self.subject(client, time) {
            count(self.of(&subject));
        }
    }

    /// Returns what a record of this client counts for; `None` if it does not count.
    fn subject(&self, client: Option<&str>, time: &str) -> Option<String> {
        let client = client.unwrap_or(UNNAMED);
        if self.only.as_deref().is_some_and(|only| only != client) {
            return None;
        }
        Some(if self.by_day { time.get(..10).unwrap_or(time) } else { client }.to_owned())
    }

    fn of(&mut self, subject: &str) -> &mut Usage {
        self.usage.entry(subject.to_owned()).or_default()
    }
}
