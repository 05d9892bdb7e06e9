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
fn frames() {
    let expected = [
        "message",
        "incomplete",
        "a message that is too long",
        "too many bytes of incomplete messages",
        "a message with too many parts",
        "too many incomplete messages",
        "a ping is no part of a message",
        "a frame of an unknown kind",
        "a frame that is too long",
    ];
    assert_reaches("frames", fuzz::frames, &expected);
}

#[test]
fn messages_of_fronts() {
    let messages = [
        "Request",
        "Input",
        "Credit",
        "Close",
        "Listening",
        "InFlight",
        "Counters",
        "McpSessionEnded",
        "ConnectionClosed",
        "BeginSpan",
    ];
    let requests = [
        "Authenticate",
        "RunCode",
        "FollowRun",
        "McpSession",
        "Search",
        "DescribeCatalogue",
        "GetResult",
        "ReadFile",
        "List",
        "Call",
        "ResumeCall",
        "FollowChanges",
        "Health",
        "ServiceHealth",
        "Readiness",
        "SharedState",
        "Metrics",
    ];
    let inputs =
        ["Answer", "Questions", "View", "Detach", "Cancel", "Abandon", "ChangesDelivered", "EndSpan"];
    let others =
        ["Goodbye", "Refused", "Skipped", "a message in the wrong direction", "a message that is none"];
    let expected = [&messages[..], &requests, &inputs, &others].concat();
    assert_reaches("engine_side", fuzz::engine_side, &expected);
}

#[test]
fn messages_of_the_engine() {
    let messages = ["Lifecycle", "Settings", "Begun", "AccessEnded", "SessionMessage", "Event", "Response"];
    let events = [
        "Following",
        "Question",
        "Questions",
        "View",
        "Detached",
        "ProgressMessage",
        "Notification",
        "Changed",
    ];
    let responses = [
        "Run",
        "Json",
        "File",
        "Entries",
        "Call",
        "Reasons",
        "Text",
        "Access",
        "NotFound",
        "Invalid",
        "Error",
        "DeadlineExceeded",
        "EngineFailed",
    ];
    let others = ["Refused", "Skipped", "a message in the wrong direction", "a message that is none"];
    let expected = [&messages[..], &events, &responses, &others].concat();
    assert_reaches("front_side", fuzz::front_side, &expected);
}

#[test]
fn first_messages_of_connections() {
    let expected = [
        "Hello",
        "Welcome",
        "Unsupported",
        "OtherSetup",
        "Busy",
        "closed",
        "too long",
        "incomplete",
        "invalid",
    ];
    assert_reaches("first_messages", fuzz::first_messages, &expected);
}
