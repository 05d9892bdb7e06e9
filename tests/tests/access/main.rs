//! Who comes in over HTTP, as whom, to what, and how often.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, clippy::too_many_lines)] // A test that cannot go on should end loudly.

mod command;
mod grants;
mod limits;
mod oauth;
mod peer;
mod tokens;

use lockhouse_tests::{Lockhouse, Reply, Visitor};
use serde_json::{Value, json};

/// Makes a token, with these arguments besides.
fn token(lockhouse: &Lockhouse, arguments: &[&str]) -> String {
    let finished = lockhouse.run(&[&["token", "create"], arguments].concat());
    assert_eq!(finished.status, Some(0), "{finished:?}");
    finished.stdout.trim_end().to_owned()
}

/// What is answered to somebody who asks for the list of tools.
async fn asks(visitor: &Visitor) -> Reply {
    visitor.request("tools/list", json!({})).await
}

/// Status, and what a program is told: `401 invalid_token`; `200` alone for who is let in.
fn told(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let error = body["error"].as_str().map(|error| format!(" {error}")).unwrap_or_default();
    format!("{}{error}", reply.status)
}

/// In words for a person.
fn words(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    body["error_description"].as_str().unwrap_or_default().to_owned()
}
