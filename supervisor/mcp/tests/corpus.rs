//! Passes the seeds of the fuzz targets, and changes of them, to the functions that the fuzzer calls, and checks that these inputs cover all
//! kinds of results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../../tests/fuzz/replay.rs"]
mod replay;

use fuzz::Coverage;

/// Passes the seeds of a target to its function, and checks that they reach these kinds of results.
fn assert_reaches(target: &str, run: fn(&[u8]) -> Coverage, expected: &[&str]) {
    replay::assert_reaches(&replay::replay(&fuzz::seeds()[target], run), expected);
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
    assert_reaches("server_lines", fuzz::server_lines, &expected);
}

#[test]
fn events_of_servers() {
    let expected = ["too large", "named", "only an id or a delay", "result", "dropped"];
    assert_reaches("server_events", fuzz::server_events, &expected);
}

#[test]
fn lists_of_tools() {
    let expected = ["without annotations", "accepted with annotations", "with invalid annotations"];
    assert_reaches("tool_list", fuzz::tool_list, &expected);
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
    assert_reaches("client_requests", fuzz::client_requests, &expected);
}
