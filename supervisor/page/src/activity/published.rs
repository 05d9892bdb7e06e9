//! The sections that this module publishes: runs, denials, servers and savings.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::State;
use super::run_record::RunRecord;
use crate::section::Section;
use crate::sections::Sections;
use crate::text;

/// Maximum numbers of runs in the section of runs.
const ACTIVE_MAX: usize = 200;
const RECENT_MAX: usize = 100;
/// Maximum number of upstream servers in the section of servers.
const SERVERS_MAX: usize = 256;

/// A run that a Lockhouse process reports as active.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ActiveRun {
    /// The process id of the supervisor.
    pub supervisor: u32,
    pub execution: String,
    pub client: Option<String>,
    pub language: String,
    pub session: Option<String>,
    pub state: String,
    /// What the oldest pending question of the run asks about.
    pub waiting_for: Option<String>,
    /// When the run was requested, RFC 3339.
    pub started: String,
    /// CPU time and resident memory of the worker. `None` while the run has no worker.
    pub cpu_ms: Option<f64>,
    pub memory_bytes: Option<u64>,
    /// The process id of the worker.
    pub pid: Option<u32>,
}

/// The states of the upstream servers in all Lockhouse processes.
#[derive(Clone, Debug, Default)]
pub struct ServerStates {
    /// For each server, its state in each process.
    pub by_name: BTreeMap<String, Vec<Value>>,
    /// The total size in bytes of the tool definitions of all servers.
    pub definitions_bytes: Option<u64>,
}

impl State {
    pub(super) fn publish(&self, sections: &Sections) {
        sections.set(Section::Runs, self.runs());
        sections.set(Section::Denials, json!({"denials": self.history.denials.to_json()}));
        sections.set(Section::Servers, json!({"servers": self.servers()}));
        sections.set(Section::Savings, self.history.savings.to_json(self.definitions_bytes));
    }

    fn runs(&self) -> Value {
        let active_ids: BTreeSet<&str> = self.active.iter().map(|run| run.execution.as_str()).collect();
        let active = self.active.iter().rev().take(ACTIVE_MAX);
        let active = active.map(|run| active_json(run, self.history.runs.get(&run.execution)));
        let recent = self.history.runs.iter().rev().filter(|(id, _)| !active_ids.contains(id.as_str()));
        let recent = recent.take(RECENT_MAX).map(|(id, run)| recorded_json(id, run));
        json!({"active": active.collect::<Value>(), "recent": recent.collect::<Value>()})
    }

    /// Returns a run as the section of runs shows it. `None` if it is neither active nor in the history.
    pub(super) fn run(&self, execution: &str) -> Option<Value> {
        let recorded = self.history.runs.get(execution);
        match self.active.iter().find(|run| run.execution == execution) {
            Some(active) => Some(active_json(active, recorded)),
            None => recorded.map(|run| recorded_json(execution, run)),
        }
    }

    fn servers(&self) -> Value {
        let called = self.history.latencies.servers();
        let names: BTreeSet<&String> = self.servers.keys().chain(called).collect();
        let row = |name: &String| {
            let (latency, last_call) = self.history.latencies.to_json(name);
            let states = self.servers.get(name).cloned().unwrap_or_default();
            json!({"name": name, "states": states, "latency": latency, "last_call": last_call})
        };
        names.into_iter().take(SERVERS_MAX).map(row).collect()
    }
}

/// Returns a run of the history. A run without an end is over too if no process reports it: its process was killed.
pub(super) fn recorded_json(execution: &str, run: &RunRecord) -> Value {
    json!({
        "execution": execution, "supervisor": null, "client": run.client, "language": run.language, "session": null,
        "state": "ended", "status": run.status.as_deref().unwrap_or("unknown"), "waiting_for": null,
        "started": run.started, "wall_ms": run.wall_ms, "cpu_ms": run.cpu_ms, "memory_bytes": null, "pid": null,
        "code_bytes": run.code_bytes, "calls": run.call_count, "denied": run.denied,
        "result_bytes": run.result_bytes, "answer_bytes": run.answer_bytes, "reason": run.refusal,
        "revision": run.revision,
    })
}

fn active_json(run: &ActiveRun, recorded: Option<&RunRecord>) -> Value {
    let unrecorded = RunRecord::default();
    let mut json = recorded_json(&run.execution, recorded.unwrap_or(&unrecorded));
    json["supervisor"] = run.supervisor.into();
    json["client"] = run.client.as_deref().map(text::name).into();
    json["language"] = run.language.as_str().into();
    json["session"] = run.session.as_deref().map(text::name).into();
    json["state"] = run.state.as_str().into();
    json["status"] = Value::Null;
    json["waiting_for"] = run.waiting_for.as_deref().map(text::long).into();
    if recorded.is_none() {
        json["started"] = run.started.as_str().into();
    }
    json["cpu_ms"] = run.cpu_ms.into();
    json["memory_bytes"] = run.memory_bytes.into();
    json["pid"] = run.pid.into();
    json
}
