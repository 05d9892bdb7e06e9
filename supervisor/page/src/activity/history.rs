//! The history of runs, denials, savings and latencies, from the records of the audit log.

use std::collections::BTreeMap;

use lockhouse_audit::{AuditEvent, CallIdentity, Record};

use super::denials::Denials;
use super::latency::Latencies;
use super::run_record::RunRecord;
use super::savings::Savings;
use crate::text;

/// Maximum number of runs whose records are stored. A further run replaces the oldest one.
const RUNS_MAX: usize = 500;
/// Maximum number of calls that are stored for all runs together. The calls of the oldest runs are dropped; they are
/// read from the log again when they are requested.
const ALL_CALLS_MAX: usize = 20_000;

/// What the records of the audit log say, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The runs by their execution ids, which sort by time.
    pub(super) runs: BTreeMap<String, RunRecord>,
    pub(super) denials: Denials,
    pub(super) savings: Savings,
    pub(super) latencies: Latencies,
}

impl History {
    pub(super) fn add(&mut self, record: Record) {
        let Record { time, event, .. } = record;
        match event {
            AuditEvent::Execution {
                execution,
                client,
                language,
                servers,
                code,
                code_kept,
                code_bytes,
                policy,
                claimed: _,
            } => {
                let (client, started) = (client.as_deref().map(text::name), time);
                let run = RunRecord { started, client, language, servers, policy, ..RunRecord::default() };
                let run = RunRecord { code, code_kept, code_bytes, ..run };
                self.insert(execution, run);
            }
            AuditEvent::Refusal { execution, client, language, reason, .. } => {
                let (client, refusal) = (client.as_deref().map(text::name), Some(text::long(&reason)));
                let status = Some("refused".to_owned());
                let run =
                    RunRecord { started: time, client, language, status, refusal, ..RunRecord::default() };
                self.insert(execution, run);
            }
            AuditEvent::End { execution, status, wall_ms, cpu_ms, answer_bytes, .. } => {
                self.end_run(&execution, status, wall_ms, cpu_ms, answer_bytes);
            }
            AuditEvent::Call { about, arguments, decision, rule, approval, .. } => {
                let Some(run) = self.run(&about.execution) else { return };
                let start = run.offset_ms(&time);
                let Some(call) = run.call(&about) else { return };
                call.start_ms = Some(start);
                (call.decision, call.rule, call.approval) = (decision, Some(text::name(&rule)), approval);
                call.arguments_bytes = Some(arguments.bytes);
            }
            AuditEvent::Approval { about, outcome, .. } => {
                let Some(run) = self.run(&about.execution) else { return };
                let asked = run.offset_ms(&time);
                let Some(call) = run.call(&about) else { return };
                if outcome == "asked" {
                    (call.asked_ms, call.decision) = (Some(asked), "ask".into());
                } else {
                    call.approval = Some(outcome);
                }
            }
            AuditEvent::Denial { about, decision, reason, rule } => {
                self.add_denial(&time, &about, (&decision, &reason, rule.as_deref()));
            }
            AuditEvent::Outcome { about, outcome, ms, result_bytes } => {
                self.add_outcome(&time, &about, outcome, ms, result_bytes);
            }
            _ => {}
        }
    }

    /// Records the end of a run, with its elapsed time and its CPU time in milliseconds.
    fn end_run(
        &mut self,
        execution: &str,
        status: String,
        wall_ms: f64,
        cpu_ms: Option<f64>,
        answer_bytes: Option<u64>,
    ) {
        let Some(run) = self.runs.get_mut(execution) else { return };
        run.revision += 1;
        (run.status, run.wall_ms, run.cpu_ms) = (Some(status), Some(wall_ms), cpu_ms);
        run.answer_bytes = answer_bytes;
        self.savings.add(run);
    }

    fn insert(&mut self, execution: String, run: RunRecord) {
        self.runs.insert(execution, run);
        if self.runs.len() > RUNS_MAX {
            self.runs.pop_first();
        }
        let mut calls: usize = self.runs.values().map(|run| run.calls.len()).sum();
        for run in self.runs.values_mut() {
            if calls <= ALL_CALLS_MAX {
                return;
            }
            calls -= run.calls.len();
            run.drop_calls();
        }
    }

    /// Returns the run, whose record is about to change. `None` if it is not known: a direct call belongs to no run.
    fn run(&mut self, execution: &str) -> Option<&mut RunRecord> {
        let run = self.runs.get_mut(execution)?;
        run.revision += 1;
        Some(run)
    }

    fn add_denial(&mut self, time: &str, about: &CallIdentity, told: (&str, &str, Option<&str>)) {
        let (decision, reason, rule) = told;
        self.denials.add(time, about, told);
        let Some(run) = self.run(&about.execution) else { return };
        run.denied += 1;
        run.call_count += 1;
        let at = run.offset_ms(time);
        let Some(call) = run.call(about) else { return };
        (call.decision, call.rule) = (decision.to_owned(), rule.map(text::name));
        call.reason = Some(text::long(reason));
        call.outcome.get_or_insert_with(|| "denied".to_owned());
        let began = *call.start_ms.get_or_insert(call.asked_ms.unwrap_or(at));
        call.ms.get_or_insert((at - began).max(0.0));
    }

    fn add_outcome(&mut self, time: &str, about: &CallIdentity, outcome: String, ms: f64, bytes: u64) {
        self.latencies.add(time, &about.server, ms, &outcome);
        let Some(run) = self.run(&about.execution) else { return };
        run.call_count += 1;
        run.result_bytes = run.result_bytes.saturating_add(bytes);
        let ended = run.offset_ms(time);
        let Some(call) = run.call(about) else { return };
        if call.asked_ms.is_none() {
            // The duration counts from the worker's request, which the record of the call follows.
            call.start_ms = Some((ended - ms).max(0.0));
        }
        (call.outcome, call.ms, call.result_bytes) = (Some(outcome), Some(ms), Some(bytes));
    }
}
