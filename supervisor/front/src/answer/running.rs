//! The answer for a run that has not ended yet, as JSON and as text.

use std::time::Duration;

use lockhouse_messages::{Progress, RunState, RunView, UserWait};
use lockhouse_protocol::ResultHandle;
use serde_json::{Map, Value, json};

use super::run_text::times;

/// Maximum number of tools in the text about a running program.
const TOOLS_IN_FLIGHT_MAX: usize = 10;

/// A run that has not ended, and the handle by which its answer can be read later.
#[derive(Debug)]
pub(crate) struct RunningAnswer {
    pub(crate) view: RunView,
    pub(crate) handle: ResultHandle,
}

impl RunningAnswer {
    /// Returns the handle of the run, its progress, and a hint for the model how to wait for the result with the tool
    /// `reader`.
    pub(super) fn to_json(&self, reader: &str) -> Value {
        let Self { view, handle } = self;
        let mut progress = Map::new();
        progress.insert("elapsed_s".into(), seconds(view.age).into());
        if matches!(view.state, RunState::Queued) {
            progress.insert("waiting".into(), "for a worker".into());
        }
        let mut hint = format!(
            "the program is still running: {reader}(handle) waits for its answer; do not run it again"
        );
        if let Some(Progress { finished_calls, in_flight, waiting_for, stdout, .. }) = view.progress() {
            if let Some(UserWait { reason, since }) = waiting_for {
                progress.insert("waiting".into(), "for a person".into());
                progress.insert("waiting_for".into(), reason.as_str().into());
                progress.insert("waiting_s".into(), seconds(*since).into());
                hint = format!(
                    "the program waits for a person ({reason}): {reader}(handle) waits for its answer; do not run it again"
                );
            }
            progress.insert("calls".into(), (*finished_calls).into());
            if !in_flight.is_empty() {
                progress.insert("under_way".into(), json!(in_flight));
            }
            if !stdout.is_empty() {
                progress.insert("stdout_tail".into(), stdout.as_str().into());
            }
        }
        json!({
            "execution": view.execution.to_string(), "status": "running", "handle": handle.as_str(),
            "progress": progress, "hint": hint,
        })
    }

    /// Returns the text blocks: the progress, how to wait for the answer, and the last part of what the program has printed
    /// on standard output, if anything.
    pub(super) fn texts(&self, reader: &str) -> Vec<String> {
        let Self { view, handle } = self;
        let mut facts = vec![format!("{:.1} s", seconds(view.age))];
        if matches!(view.state, RunState::Queued) {
            facts.push("waiting for a worker".to_owned());
        }
        let mut tail = None;
        if let Some(Progress { finished_calls, in_flight, waiting_for, stdout, .. }) = view.progress() {
            if *finished_calls > 0 {
                facts.push(format!("{finished_calls} calls made"));
            }
            if !in_flight.is_empty() {
                let targets = in_flight.iter().take(TOOLS_IN_FLIGHT_MAX);
                let targets: Vec<String> = targets.map(|(target, count)| times(target, *count)).collect();
                facts.push(format!("waiting for {}", targets.join(", ")));
            }
            if let Some(UserWait { reason, .. }) = waiting_for {
                facts.push(format!("waiting for a person: {reason}"));
            }
            tail = (!stdout.is_empty()).then(|| format!("Output so far ends with:\n{stdout}"));
        }
        let progress = format!(
            "Still running ({}). {reader}(\"{handle}\") waits for the answer; do not run it again.",
            facts.join(", ")
        );
        [progress].into_iter().chain(tail).collect()
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_millis() as f64 / 1000.0
}
