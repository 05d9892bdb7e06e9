//! Passes the seeds of the fuzz targets, and changes of them, to the functions that the fuzzer calls, and checks that these inputs cover all
//! kinds of results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../tests/fuzz/replay.rs"]
mod replay;

use fuzz::Coverage;
use replay::assert_reaches;

/// Passes the seeds of a target to its function. Returns the words in the kinds of results that they reach.
fn replay(target: &str, run: fn(&[u8]) -> Coverage) -> Coverage {
    let reached = replay::replay(&fuzz::seeds()[target], run);
    reached.iter().flat_map(|kind| kind.split(' ')).map(str::to_owned).collect()
}

#[test]
fn frames() {
    let reached = replay("frame_decoder", fuzz::frame_decoder);
    assert_reaches(&reached, &["Ready", "Refused", "Output", "Stdout", "Stderr", "Request", "Done"]);
    assert_reaches(&reached, &["Call", "ListServers", "ListTools", "Describe", "Search"]);
    assert_reaches(&reached, &["Value", "Error", "Interrupted", "CpuLimit", "MemoryLimit"]);
    assert_reaches(&reached, &["Run", "Reply", "Ok", "Err", "Prepare", "Fork"]);
    assert_reaches(&reached, &["Prepared", "Forked", "Exited", "Status", "Signal", "ForkFailed"]);
    assert_reaches(&reached, &["TooLarge", "Malformed"]);
}

#[test]
fn zygote_messages() {
    let reached = replay("zygote_messages", fuzz::zygote_messages);
    assert_reaches(
        &reached,
        &["Prepare", "Fork", "Prepared", "Refused", "Forked", "Exited", "Status", "Signal"],
    );
    assert_reaches(&reached, &["ForkFailed", "TooLarge", "Malformed"]);
}

#[test]
fn conversations() {
    let reached = replay("conversation", fuzz::conversation);
    assert_reaches(&reached, &["Verify", "SealFailed", "Append", "Answer", "Finish", "Rest", "Stop"]);
    assert_reaches(&reached, &["Output", "Calls", "Lookups"]);
    assert_reaches(&reached, &["OutOfPhase", "ReusedCallId", "TooManyInFlight"]);
}
