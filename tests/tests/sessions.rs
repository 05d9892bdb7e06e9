//! Tests of sessions: variables that persist between runs, how sessions end, and which AI client owns a session.

mod calls;
mod command;
mod hostile_workers;
mod interrupted_runs;
mod limits;
mod ownership;
mod variables;

use lockhouse_tests::{Process, Session, children};
use serde_json::Value;

/// Returns the JSON text of the value in a successful answer. For a failed run, returns the type and message of its
/// error.
fn outcome_text(answer: &Value) -> String {
    match answer["status"] == "ok" {
        true => answer["value"].to_string(),
        false => format!("{}: {}", text(&answer["error"]["type"]), text(&answer["error"]["message"])),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns all worker processes: the child processes of the supervisor's child processes.
fn workers(session: &Session) -> Vec<Process> {
    children(session.pid()).iter().flat_map(|zygote| children(zygote.pid)).collect()
}
