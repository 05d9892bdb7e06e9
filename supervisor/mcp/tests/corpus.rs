//! Replays the fuzzing corpora through the functions that the fuzzer calls, and checks that each corpus still covers all kinds
//! of results.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::Path;

use fuzz::Coverage;

/// Replays the corpus of a target, and checks that it reaches these kinds of results.
fn replay(target: &str, run: fn(&[u8]) -> Coverage, expected: &[&str]) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs = std::fs::read_dir(directory).unwrap().map(|input| input.unwrap().path());
    let reached: Coverage = inputs.flat_map(|input| run(&std::fs::read(input).unwrap())).collect();
    let missing: Vec<_> = expected.iter().filter(|kind| !reached.contains(**kind)).collect();
    assert!(missing.is_empty(), "not reached any more: {missing:?} in {reached:?}");
}

#[test]
fn lines_of_servers() {
    let expected = [
        "result",
        "error",
        "request",
        "notification",
        "dropped",
        "violation",
        "too long without an id",
        "too long with an id",
    ];
    replay("server_lines", fuzz::server_lines, &expected);
}

#[test]
fn events_of_servers() {
    let expected = ["too large", "named", "only an id or a delay", "result", "dropped"];
    replay("server_events", fuzz::server_events, &expected);
}

#[test]
fn lists_of_tools() {
    let expected = ["without annotations", "accepted with annotations", "with invalid annotations"];
    replay("tool_list", fuzz::tool_list, &expected);
}

#[test]
fn requests_of_ai_clients() {
    let expected = [
        "post accepted",
        "post refused",
        "get accepted",
        "get refused",
        "invalid",
        "notification",
        "answer",
        "known request of a session",
        "known request by itself",
        "known request refused",
        "unknown request of a session",
    ];
    replay("client_requests", fuzz::client_requests, &expected);
}
