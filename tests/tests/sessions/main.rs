//! Sessions: what stays from run to run, how they end, and what of them is whose.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod bounds;
mod calls;
mod command;
mod endings;
mod hostile;
mod names;
mod owners;

use lockhouse_tests::{Process, Session, children};
use serde_json::Value;

/// What an answer says in short: its value where it ended well, else the kind and the words of its error.
fn told(answer: &Value) -> String {
    match answer["status"] == "ok" {
        true => answer["value"].to_string(),
        false => format!("{}: {}", text(&answer["error"]["type"]), text(&answer["error"]["message"])),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The workers of all zygotes.
fn workers(session: &Session) -> Vec<Process> {
    children(session.pid()).iter().flat_map(|zygote| children(zygote.pid)).collect()
}
