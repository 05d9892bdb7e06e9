//! What a client is told of a run that goes on.

use std::time::Duration;

use lockhouse_messages::{Course, PersonWait, RunState, RunView};
use lockhouse_protocol::ResultHandle;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value, json};

/// What is told of a run that goes on.
pub(super) fn running(view: &RunView, handle: &ResultHandle) -> CallToolResult {
    let mut progress = Map::new();
    let mut told = json!({
        "execution": view.execution.to_string(), "status": "running", "handle": handle.as_str(),
    });
    progress.insert("elapsed_s".into(), seconds(view.age));
    if matches!(view.state, RunState::Queued) {
        progress.insert("waiting".into(), "for a worker".into());
    }
    let mut hint =
        "the program goes on: get_result(handle) waits for its answer; do not run it again".to_owned();
    if let Some(Course { calls, under_way, person, stdout, .. }) = view.course() {
        if let Some(PersonWait { about, since }) = person {
            progress.insert("waiting".into(), "for a person".into());
            progress.insert("waiting_for".into(), about.as_str().into());
            progress.insert("waiting_s".into(), seconds(*since));
            hint = format!(
                "the program waits for a person ({about}): get_result(handle) waits for its answer; do not run it again"
            );
        }
        progress.insert("calls".into(), (*calls).into());
        if !under_way.is_empty() {
            progress.insert("under_way".into(), json!(under_way));
        }
        if !stdout.is_empty() {
            progress.insert("stdout_tail".into(), stdout.as_str().into());
        }
    }
    told["progress"] = progress.into();
    told["hint"] = hint.into();
    CallToolResult::structured(told)
}

fn seconds(duration: Duration) -> Value {
    (duration.as_millis() as f64 / 1000.0).into()
}
