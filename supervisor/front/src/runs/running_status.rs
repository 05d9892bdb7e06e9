//! The answer for a run (the execution of a program) that has not ended yet.

use std::time::Duration;

use lockhouse_messages::{Progress, RunState, RunView, UserWait};
use lockhouse_protocol::ResultHandle;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, AnswerKind};

/// Returns the answer for a run that is still running: its handle, its progress, and a hint for the model how to wait
/// for the result with the tool `reader`.
pub(super) fn running_status(view: &RunView, handle: &ResultHandle, reader: &str) -> Answer {
    let mut progress = Map::new();
    let mut status = json!({
        "execution": view.execution.to_string(), "status": "running", "handle": handle.as_str(),
    });
    progress.insert("elapsed_s".into(), seconds(view.age));
    if matches!(view.state, RunState::Queued) {
        progress.insert("waiting".into(), "for a worker".into());
    }
    let mut hint =
        format!("the program is still running: {reader}(handle) waits for its answer; do not run it again");
    if let Some(Progress { finished_calls, in_flight, waiting_for, stdout, .. }) = view.progress() {
        if let Some(UserWait { reason, since }) = waiting_for {
            progress.insert("waiting".into(), "for a person".into());
            progress.insert("waiting_for".into(), reason.as_str().into());
            progress.insert("waiting_s".into(), seconds(*since));
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
    status["progress"] = progress.into();
    status["hint"] = hint.into();
    Answer::new(AnswerKind::Running, status)
}

fn seconds(duration: Duration) -> Value {
    (duration.as_millis() as f64 / 1000.0).into()
}
