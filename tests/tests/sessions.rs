//! Sessions: variables that persist between runs, how sessions end, and to which client they belong.

mod calls;
mod command;
mod hostile_workers;
mod interrupted_runs;
mod limits;
mod ownership;
mod variables;

use lockhouse_tests::{Process, Session, children};
use serde_json::Value;

/// Returns the value of a successful answer, or the type and message of its error.
fn outcome_text(answer: &Value) -> String {
    match answer["status"] == "ok" {
        true => answer["value"].to_string(),
        false => format!("{}: {}", text(&answer["error"]["type"]), text(&answer["error"]["message"])),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the workers of all zygotes.
fn workers(session: &Session) -> Vec<Process> {
    children(session.pid()).iter().flat_map(|zygote| children(zygote.pid)).collect()
}
