//! Replays the fuzzing corpus of the protocol crate through the functions that the fuzzer calls, and checks that the
//! corpus still covers all kinds of results.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

#[allow(unreachable_pub, reason = "in the package for fuzzing, this module belongs to a library")]
#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use std::path::Path;

use fuzz::Coverage;

/// Passes each input in the corpus of the fuzz target `target` to `check`, and returns the kinds of results that all
/// inputs together produced.
fn replay(target: &str, check: fn(&[u8]) -> Coverage) -> Coverage {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs: Vec<_> = std::fs::read_dir(directory).unwrap().map(|input| input.unwrap().path()).collect();
    assert!(!inputs.is_empty(), "no corpus for {target}");
    inputs.into_iter().flat_map(|input| check(&std::fs::read(input).unwrap())).collect()
}

/// Asserts that the inputs of the corpus produced each of the results `kinds`, given all results `reached`. If one is
/// missing, the corpus was made for an older protocol; `fuzz/examples/seeds.rs` generates new inputs.
fn assert_reaches(reached: &Coverage, kinds: &[&str]) {
    let is_reached =
        |kind: &&&str| reached.iter().any(|reached| reached.split(' ').any(|word| word == **kind));
    let missing: Vec<_> = kinds.iter().filter(|kind| !is_reached(kind)).collect();
    assert!(missing.is_empty(), "not reached any more: {missing:?} in {reached:?}");
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
